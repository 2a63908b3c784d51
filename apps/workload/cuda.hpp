// SPDX-License-Identifier: Apache-2.0
// The CUDA driver library as the workloads use it: opened at run time, so that the programs
// start without one and can say what is wrong.
#pragma once

#include "base/core/result.hpp"
#include "gpu/abi/cuda.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
}

namespace gantry::workload {

struct Cuda {
#define CALL(symbol) decltype(&::symbol) symbol = nullptr;
#include "workload/cuda_calls.def"
  std::string library;  // as it was opened

  // Success, or an error that names the call, the driver's own words, the likely cause and what to
  // do.
  Status check(CUresult result, const char* call) const;
};

// "" looks for libcuda.so.1 as every CUDA program does, then where drivers are kept beside the
// loader's path. The library stays open to the end of the program.
Result<Cuda> open_cuda(const std::string& library);

struct Options {
  std::string called;  // the name it was called by, for messages; "" = its own
  std::string library;
  int device = 0;
  int hold_seconds = 0;          // how long to keep the GPU afterwards
  std::uint64_t memory_mib = 0;  // taken beside what the work needs, and kept to the end
};

struct Program {
  const char* about;
  const char* examples;
  bool takes_device = false;
  std::function<void(CLI::App&)> more = {};  // adds options of its own
  std::function<int(const Options&, std::FILE* out, std::FILE* err)> run;
};

// The options that all of them have, --help and errors in usage (status 2).
int run_program(const Program& program, int argc, char** argv);

// "name: error", one line; cause and remedy below it.
void print_error(std::FILE* err, const std::string& name, const Error& error);

}  // namespace gantry::workload
