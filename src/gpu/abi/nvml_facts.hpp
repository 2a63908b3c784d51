// SPDX-License-Identifier: Apache-2.0
// Sizes, offsets and values of NVML's interface as (what, value) rows, from our header and from the
// vendor's.
#pragma once

#include <map>
#include <string>

namespace gantry::abi {

using NvmlFacts = std::map<std::string, std::string>;

NvmlFacts our_nvml_facts();
NvmlFacts
vendor_nvml_facts();  // of what that header declares; a "missing" row if there is no such header

}  // namespace gantry::abi
