// SPDX-License-Identifier: Apache-2.0
//
// The processes that hold a context on a GPU, as far as this pid namespace can see them.
#pragma once

#include "sim/nvidia-smi/session.hpp"

namespace smi {

inline constexpr unsigned kMaxListedProcesses = 128;
inline constexpr unsigned kNoInstance = 0xffffffffU;

struct Process {
  unsigned pid = 0;
  char type[4] = "C";
  Text name;
  Text memory;  // "518 MiB" or "N/A"
  unsigned gpu_instance = kNoInstance;
  unsigned compute_instance = kNoInstance;
};

struct Processes {
  unsigned count = 0;
  Process rows[kMaxListedProcesses];
};

/// `which`: compute contexts only, or graphics ones too.
enum class Contexts { Compute, All };
void read_processes(const Gpu& gpu, Contexts which, Processes& out);

}  // namespace smi
