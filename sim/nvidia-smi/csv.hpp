// SPDX-License-Identifier: Apache-2.0
//
// The pieces --query-gpu and --query-compute-apps share.
#pragma once

#include "sim/nvidia-smi/text.hpp"

namespace smi {

struct CsvFormat {
  bool header = true;
  bool units = true;
};

/// "csv,noheader,nounits"; false for a word it does not know.
bool parse_format(const char* format, CsvFormat& out);

/// What a value looks like in a column: without its unit when asked, in brackets when there is
/// none.
Text csv_cell(const Text& value, bool with_unit, bool bracket);

/// What an unknown field is answered with.
void explain_unknown_field(const char* field);

}  // namespace smi
