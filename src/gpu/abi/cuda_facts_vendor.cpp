// SPDX-License-Identifier: Apache-2.0
#ifdef GANTRY_VENDOR_CUDA_H
#define __CUDA_API_VERSION_INTERNAL  // declare old and new entry points under their own names
#include GANTRY_VENDOR_CUDA_H
#define GANTRY_CUDA_ABI CUDA_VERSION
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

#if defined(GANTRY_VENDOR_CUDA_H) && CUDA_VERSION >= 12080

#include "gpu/abi/cuda_facts_internal.hpp"

namespace gantry::abi {

Facts vendor_cuda_facts() {
  return collect_facts();
}

}  // namespace gantry::abi

#else

#include "gpu/abi/cuda_facts.hpp"

namespace gantry::abi {

Facts vendor_cuda_facts() {
  return {{"missing", "no cuda.h of CUDA 12.8 or newer here (cmake -DGANTRY_VENDOR_CUDA_H=FILE)"}};
}

}  // namespace gantry::abi

#endif
