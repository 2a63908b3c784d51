// SPDX-License-Identifier: Apache-2.0
#include "gpu/abi/nvml.h"
#include "gpu/abi/nvml_facts_internal.hpp"

namespace gantry::abi {

NvmlFacts our_nvml_facts() {
  NvmlFacts facts;
#include "gpu/abi/nvml_functions.def"
#include "gpu/abi/nvml_layout.def"
  return facts;
}

}  // namespace gantry::abi
