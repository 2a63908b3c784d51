// SPDX-License-Identifier: Apache-2.0
// Everything measurable about one description of the CUDA interface, as (what, value) rows. The
// file that includes this has included either our header or the vendor's before, and calls
// collect_facts().
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <typeinfo>

namespace gantry::abi {

using Facts = std::map<std::string, std::string>;

Facts our_cuda_facts();
Facts vendor_cuda_facts();  // empty, with a "missing" row saying why, when there is no vendor
                            // header

}  // namespace gantry::abi
