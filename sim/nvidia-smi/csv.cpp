// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/csv.hpp"

namespace smi {

bool parse_format(const char* format, CsvFormat& out) {
  Text word;
  while (next_item(&format, word)) {
    if (word.is("noheader")) {
      out.header = false;
    } else if (word.is("nounits")) {
      out.units = false;
    } else if (!word.is("csv")) {
      return false;
    }
  }
  return true;
}

Text csv_cell(const Text& value, bool with_unit, bool bracket) {
  Text out;
  const bool missing =
      value.is(kNotAvailable) || strncmp(value.c_str(), "Requested functionality", 23) == 0;
  if (missing) {
    out.set(bracket ? "[%s]" : "%s", value.c_str());
    return out;
  }
  const char* space = strchr(value.c_str(), ' ');
  if (with_unit || space == nullptr) return value;
  out.set("%.*s", static_cast<int>(space - value.c_str()), value.c_str());
  return out;
}

void explain_unknown_field(const char* field) {
  printf("Field \"%s\" is not a valid field to query.\n\n", field);
}

}  // namespace smi
