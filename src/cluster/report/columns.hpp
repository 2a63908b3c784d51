// SPDX-License-Identifier: Apache-2.0
// Text in columns as Go's text/tabwriter aligns it (two blanks of padding, left): gpushare's tables
// are made with it, and scripts cut them by position. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gantry::report {

// Cells of `text` end with a tab; what follows the last tab of a line belongs to no column. A
// column is as wide as its widest cell among neighbouring lines that have it: a line without that
// cell ends it. Widths are counted in code points.
std::string align_columns(std::string_view text);

}  // namespace gantry::report
