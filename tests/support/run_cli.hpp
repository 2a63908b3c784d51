// SPDX-License-Identifier: Apache-2.0
// Runs `gantry` inside the test: arguments in, exit status and text out.
#pragma once

#include "gantry/main_program.hpp"
#include "support/captured_output.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace gantry::test {

using CliResult = ProgramResult;

inline CliResult run_cli(std::vector<std::string> words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return run_captured([&](std::FILE* out, std::FILE* err) {
    return cli::main_program(static_cast<int>(words.size()), argv.data(), out, err);
  });
}

}  // namespace gantry::test
