// SPDX-License-Identifier: Apache-2.0
// A FILE* whose text a test reads afterwards.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace gantry::test {

class CapturedOutput {
 public:
  CapturedOutput() : file_(::open_memstream(&data_, &size_)) {}
  ~CapturedOutput() {
    std::fclose(file_);
    std::free(data_);
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::FILE* file() const { return file_; }
  std::string text() const {
    std::fflush(file_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

// The exit status of a program, as a shell sees it, and its output.
struct ProgramResult {
  int status = 0;
  std::string out;
  std::string err;
};

// `program`: int(std::FILE* out, std::FILE* err).
template <class Program>
ProgramResult run_captured(const Program& program) {
  const CapturedOutput out;
  const CapturedOutput err;
  const int status = program(out.file(), err.file());
  return {status, out.text(), err.text()};
}

}  // namespace gantry::test
