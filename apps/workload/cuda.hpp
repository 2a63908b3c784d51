// SPDX-License-Identifier: Apache-2.0
// The CUDA driver library for the workloads. It is opened at run time, so that the programs start
// without a driver and can say what is wrong.
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
  std::string library;  // the name that was opened

  // Returns success, or an error with the call, the driver's own text, the likely cause and the
  // remedy.
  Status check(CUresult result, const char* call) const;
  // The same for an allocation of this size: says whether it could fit at all.
  Status check_allocation(CUresult result, const char* call, std::uint64_t mib) const;
  std::string describe(CUresult result, const char* call) const;  // without cause and remedy
};

// If the name is "", searches for libcuda.so.1 as every CUDA program does, then in the directories
// where drivers are installed outside of the loader's path. The library stays open until the
// program ends.
Result<Cuda> open_cuda(const std::string& library);

struct Options {
  std::string called;  // the name by which it was called, for messages; "" = its own
  std::string library;
  int device = 0;
  int hold_seconds = 0;          // how long to keep the GPU afterwards
  std::uint64_t memory_mib = 0;  // allocated in addition, kept until the end
};

struct Program {
  const char* about;
  const char* examples;
  bool takes_device = false;
  std::function<void(CLI::App&)> more = {};  // adds the program's own options
  std::function<int(const Options&, std::FILE* out, std::FILE* err)> run;
};

// Handles the options that all workloads have, --help and usage errors (status 2).
int run_program(const Program& program, int argc, char** argv);

// Prints "name: error" on one line, with cause and remedy below it.
void print_error(std::FILE* err, const std::string& name, const Error& error);

}  // namespace gantry::workload
