// SPDX-License-Identifier: Apache-2.0
// The parts of PTX that a driver without a compiler must know: version, target, names of kernels.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gantry::sim::cuda {

struct PtxSummary {
  bool is_ptx;    // begins like PTX
  int version;    // 10 * major + minor; 0 when it says none
  int target;     // 52 of "sm_52"; 0 when it says none
  bool balanced;  // every brace is closed
  char* names;    // of the .entry functions, each ended by NUL; the caller frees
  uint32_t name_count;
};

// `text` ends with NUL. Comments and strings are skipped. At most 1 GiB is read.
PtxSummary summarise_ptx(const char* text);

}  // namespace gantry::sim::cuda
