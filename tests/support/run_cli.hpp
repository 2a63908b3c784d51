// SPDX-License-Identifier: Apache-2.0
// Runs `gantry` inside the test: arguments in, exit status and text out.
#pragma once

#include "gantry/main_program.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace gantry::test {

struct CliRun {
  int status = 0;
  std::string out;
  std::string err;
};

inline CliRun run_cli(std::vector<std::string> words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char* out = nullptr;
  char* err = nullptr;
  std::size_t out_size = 0;
  std::size_t err_size = 0;
  std::FILE* out_file = open_memstream(&out, &out_size);
  std::FILE* err_file = open_memstream(&err, &err_size);
  CliRun run;
  run.status = cli::main_program(static_cast<int>(words.size()), argv.data(), out_file, err_file);
  std::fclose(out_file);
  std::fclose(err_file);
  run.out.assign(out, out_size);
  run.err.assign(err, err_size);
  std::free(out);
  std::free(err);
  return run;
}

}  // namespace gantry::test
