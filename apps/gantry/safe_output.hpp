// SPDX-License-Identifier: Apache-2.0
// The one door through which commands print. Names, values and messages come from files, images,
// specifications and API servers, and a control character in them could command the terminal.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>

namespace gantry::cli {

// A stream that writes to another stream. Control characters except newline and tab, and bytes that
// are not UTF-8, arrive as \xNN.
class SafeOutput {
 public:
  explicit SafeOutput(std::FILE* raw);
  ~SafeOutput();
  SafeOutput(const SafeOutput&) = delete;
  SafeOutput& operator=(const SafeOutput&) = delete;

  std::FILE* file() const { return file_; }

 private:
  static ssize_t write(void* self, const char* bytes, size_t size);
  bool write(std::string_view text);

  std::FILE* raw_;
  std::FILE* file_;
  std::string pending_;  // the beginning of a character, or a carriage return
};

}  // namespace gantry::cli
