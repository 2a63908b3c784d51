// SPDX-License-Identifier: Apache-2.0
#include "abi/nvml.h"
#include "abi/nvml_facts_internal.hpp"

namespace gantry::abi {

NvmlFacts our_nvml_facts() {
  NvmlFacts facts;
#include "abi/nvml_functions.def"
#include "abi/nvml_layout.def"
  return facts;
}

}  // namespace gantry::abi
