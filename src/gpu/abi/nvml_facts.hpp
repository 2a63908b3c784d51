// SPDX-License-Identifier: Apache-2.0
// NVML's interface as (what, value) rows, measured on our header and on the vendor's.
#pragma once

#include <map>
#include <string>

namespace gantry::abi {

using NvmlFacts = std::map<std::string, std::string>;

NvmlFacts our_nvml_facts();
NvmlFacts vendor_nvml_facts();  // of what that header declares; a "missing" row when there is none

}  // namespace gantry::abi
