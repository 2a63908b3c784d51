// SPDX-License-Identifier: Apache-2.0
//
// The command line of nvidia-smi, without its subcommands.
#pragma once

namespace smi {

struct Options {
  bool help = false, version = false, list = false, list_excluded = false, query = false,
       xml = false, reset = false;
  bool reset_gpu_clocks = false, reset_memory_clocks = false;
  bool help_query_gpu = false, help_query_apps = false;
  const char* ids = nullptr;
  const char* display = nullptr;
  const char* file = nullptr;
  const char* query_gpu = nullptr;
  const char* query_apps = nullptr;
  const char* format = nullptr;
  const char* persistence = nullptr;
  const char* compute_mode = nullptr;
  const char* mig_mode = nullptr;
  const char* power_limit = nullptr;
  const char* gpu_clocks = nullptr;
  const char* memory_clocks = nullptr;
  unsigned loop_ms = 0;  // 0: once
};

/// Fills `out`; on a mistake prints the vendor's text and returns the exit status.
int parse_options(int argc, char** argv, Options& out);

}  // namespace smi
