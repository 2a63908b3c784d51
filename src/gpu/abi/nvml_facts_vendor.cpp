// SPDX-License-Identifier: Apache-2.0
#ifdef GANTRY_VENDOR_NVML_H

#define NVML_NO_UNVERSIONED_FUNC_DEFS  // declare old and new functions under their own names
#include GANTRY_VENDOR_NVML_H

#include "gpu/abi/nvml_facts_internal.hpp"

namespace gantry::abi {

NvmlFacts vendor_nvml_facts() {
  NvmlFacts facts;
#include "vendor/nvml_functions.def"
#include "vendor/nvml_layout.def"
  return facts;
}

}  // namespace gantry::abi

#else

#include "gpu/abi/nvml_facts.hpp"

namespace gantry::abi {

NvmlFacts vendor_nvml_facts() {
  return {{"missing", "no nvml.h of the vendor here (cmake -DGANTRY_VENDOR_INCLUDE=DIRECTORY)"}};
}

}  // namespace gantry::abi

#endif
