// SPDX-License-Identifier: Apache-2.0
// Aligns text in columns like Go's text/tabwriter (left, two blanks of padding). gpushare makes its
// tables with it, and scripts cut them by position. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gantry::report {

// Each cell of `text` ends with a tab; text after the last tab of a line belongs to no column. A
// column is as wide as its widest cell in adjacent lines; a line without that cell ends the column.
// Widths are counted in code points.
std::string align_columns(std::string_view text);

}  // namespace gantry::report
