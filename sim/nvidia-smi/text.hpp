// SPDX-License-Identifier: Apache-2.0
//
// Short texts on the stack. This program carries no C++ runtime (it runs in images with any glibc
// from 2.17 on), so no std::string.
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

namespace smi {

/// Text of bounded length; what does not fit is cut.
class Text {
 public:
  [[gnu::format(printf, 2, 3)]] void set(const char* format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(data_, sizeof data_, format, args);
    va_end(args);
  }
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    const size_t used = strlen(data_);
    va_list args;
    va_start(args, format);
    vsnprintf(data_ + used, sizeof data_ - used, format, args);
    va_end(args);
  }

  const char* c_str() const { return data_; }
  char* data() { return data_; }
  bool is(const char* other) const { return strcmp(data_, other) == 0; }
  bool empty() const { return data_[0] == '\0'; }

 private:
  char data_[256] = {};
};

inline constexpr const char* kNotAvailable = "N/A";

/// Cuts `list` at commas; false when nothing is left.
bool next_item(const char** list, Text& item);

/// A whole decimal number; false for anything else.
bool parse_number(const char* text, unsigned* out);

}  // namespace smi
