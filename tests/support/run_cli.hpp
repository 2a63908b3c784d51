// SPDX-License-Identifier: Apache-2.0
// Runs `gantry` inside the test: arguments in, exit status and text out.
#pragma once

#include "gantry/main_program.hpp"
#include "support/captured_output.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace gantry::test {

using CliResult = ProgramResult;

// Puts back the variables that commands set for the program which they are about to become:
// `gantry sim run` and `gantry share run`.
class SavedEnvironment {
 public:
  SavedEnvironment() {
    for (const auto* name : kNames) {
      const char* value = std::getenv(name);
      values_.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
    }
  }
  ~SavedEnvironment() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i]) {
        ::setenv(kNames[i], values_[i]->c_str(), 1);
      } else {
        ::unsetenv(kNames[i]);
      }
    }
  }
  SavedEnvironment(const SavedEnvironment&) = delete;
  SavedEnvironment& operator=(const SavedEnvironment&) = delete;

 private:
  static constexpr std::array kNames{"GANTRY_ROOT", "LD_LIBRARY_PATH", "PATH",
                                     "NVIDIA_CTK_DRIVER_ROOT", "NVIDIA_CTK_DEV_ROOT"};
  std::vector<std::optional<std::string>> values_;
};

inline CliResult run_cli(std::vector<std::string> words) {
  const SavedEnvironment saved;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return run_captured([&](std::FILE* out, std::FILE* err) {
    return cli::main_program(static_cast<int>(words.size()), argv.data(), out, err);
  });
}

}  // namespace gantry::test
