// SPDX-License-Identifier: Apache-2.0
// The exported functions, made from the list of entry points. Each does the common steps (Call) and
// calls the function of the same name in entries.hpp; a missing one is a link error.
#include "sim/libcuda/entries.hpp"

#include "sim/libcuda/driver.hpp"

#define GANTRY_EXPORT extern "C" __attribute__((visibility("default")))

#define GANTRY_DEFINE(exported, symbol, parameters, arguments, phase, stream)      \
  GANTRY_EXPORT CUresult exported parameters;                                      \
  GANTRY_EXPORT CUresult exported parameters {                                     \
    const gantry::sim::cuda::Call call(#exported, gantry::sim::cuda::Phase::phase, \
                                       gantry::sim::cuda::DefaultStream::stream);  \
    if (call.refused() != CUDA_SUCCESS) return call.refused();                     \
    return gantry::sim::cuda::entry::symbol arguments;                             \
  }

#define CUDA_ENTRY(symbol, name, since, parameters, arguments) \
  GANTRY_DEFINE(symbol, symbol, parameters, arguments, Normal, Legacy)
#define CUDA_ENTRY_EARLY(symbol, name, since, parameters, arguments) \
  GANTRY_DEFINE(symbol, symbol, parameters, arguments, Early, Legacy)
#define CUDA_ENTRY_PTSZ(symbol, name, since, parameters, arguments)    \
  GANTRY_DEFINE(symbol, symbol, parameters, arguments, Normal, Legacy) \
  GANTRY_DEFINE(symbol##_ptsz, symbol, parameters, arguments, Normal, PerThread)
#define CUDA_ENTRY_PTDS(symbol, name, since, parameters, arguments)    \
  GANTRY_DEFINE(symbol, symbol, parameters, arguments, Normal, Legacy) \
  GANTRY_DEFINE(symbol##_ptds, symbol, parameters, arguments, Normal, PerThread)
#include "gpu/abi/cuda_entries.def"
