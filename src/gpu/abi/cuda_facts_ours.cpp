// SPDX-License-Identifier: Apache-2.0
#include "gpu/abi/cuda.h"
#include "gpu/abi/cuda_facts_internal.hpp"

namespace gantry::abi {

Facts our_cuda_facts() {
  return collect_facts();
}

}  // namespace gantry::abi
