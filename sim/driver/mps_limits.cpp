// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/mps_limits_internal.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

namespace gantry::sim {
namespace {

unsigned unit_shift(char unit) {
  switch (unit) {
    case 'K':
    case 'k': return 10;
    case 'M':
    case 'm': return 20;
    case 'G':
    case 'g': return 30;
    default: return 0;
  }
}

// A number with its unit; `text` is moved behind it.
bool read_memory_limit(const char*& text, uint64_t& bytes) {
  char* end = nullptr;
  errno = 0;
  const uint64_t number = strtoull(text, &end, 10);
  if (end == text || text[0] == '-' || errno != 0 || number == 0) return false;
  const unsigned shift = unit_shift(*end);
  if (number > UINT64_MAX >> shift) return false;
  if (shift != 0) ++end;
  if (*end == 'B' || *end == 'b') ++end;
  text = end;
  bytes = number << shift;
  return true;
}

}  // namespace

bool parse_percentage(const char* text, double& percentage) {
  char* end = nullptr;
  const double number = strtod(text, &end);
  if (end == text || *end != '\0' || !(number > 0) || number > 100) return false;
  percentage = number;
  return true;
}

bool parse_memory_limit(const char* text, uint64_t& bytes) {
  uint64_t read = 0;
  if (!read_memory_limit(text, read) || *text != '\0') return false;
  bytes = read;
  return true;
}

void parse_memory_limits(const char* text, uint64_t (&bytes)[GANTRY_SIM_MAX_GPUS]) {
  while (text != nullptr && *text != '\0') {
    char* end = nullptr;
    const unsigned long device = strtoul(text, &end, 10);
    const bool named = end != text && *end == '=' && device < GANTRY_SIM_MAX_GPUS;
    const char* value = end + (*end == '=' ? 1 : 0);
    uint64_t limit = 0;
    if (named && read_memory_limit(value, limit) && (*value == ',' || *value == '\0'))
      bytes[device] = limit;
    text = strchr(value, ',');
    if (text != nullptr) ++text;
  }
}

uint32_t multiprocessors_of(uint32_t all, double percentage) {
  if (percentage >= 100) return all;
  const auto part = static_cast<uint32_t>(all * percentage / 100) / 2 * 2;
  const uint32_t least = all < 2 ? all : 2;
  return part < least ? least : part;
}

}  // namespace gantry::sim
