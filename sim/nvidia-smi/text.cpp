// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/text.hpp"

#include <stdlib.h>

namespace smi {

bool next_item(const char** list, Text& item) {
  const char* at = *list;
  if (at == nullptr || *at == '\0') return false;
  while (*at == ' ') ++at;
  const size_t length = strcspn(at, ",");
  item.set("%.*s", static_cast<int>(length < 250 ? length : 250), at);
  for (size_t end = strlen(item.c_str()); end > 0 && item.c_str()[end - 1] == ' '; --end) {
    item.data()[end - 1] = '\0';
  }
  *list = at[length] == ',' ? at + length + 1 : at + length;
  return true;
}

bool parse_number(const char* text, unsigned* out) {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  const unsigned long value = strtoul(text, &end, 10);
  if (*end != '\0' || value > 0xffffffffUL) return false;
  *out = static_cast<unsigned>(value);
  return true;
}

}  // namespace smi
