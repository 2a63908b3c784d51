// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/driver.hpp"

#define GANTRY_EXPORT extern "C" __attribute__((visibility("default")))

// The arguments are omitted: the answer does not depend on them, and the caller cleans up the
// stack.
#define GANTRY_REFUSE(symbol, stream)                                             \
  GANTRY_EXPORT CUresult symbol();                                                \
  GANTRY_EXPORT CUresult symbol() {                                               \
    const gantry::sim::cuda::Call call(#symbol, gantry::sim::cuda::Phase::Normal, \
                                       gantry::sim::cuda::DefaultStream::stream); \
    const CUresult refused = call.refused();                                      \
    return refused != CUDA_SUCCESS ? refused : CUDA_ERROR_NOT_SUPPORTED;          \
  }
#define CUDA_UNSUPPORTED(symbol, name, since) GANTRY_REFUSE(symbol, Legacy)
#define CUDA_UNSUPPORTED_PTSZ(symbol, name, since) \
  GANTRY_REFUSE(symbol, Legacy)                    \
  GANTRY_REFUSE(symbol##_ptsz, PerThread)
#include "sim/libcuda/unsupported.def"
