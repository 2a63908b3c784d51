// SPDX-License-Identifier: Apache-2.0
// Sizes, offsets and values of one declaration of the CUDA interface, as (what, value) rows. A file
// includes either our header or the vendor's before this one, and calls collect_facts().
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <typeinfo>

namespace gantry::abi {

using Facts = std::map<std::string, std::string>;

Facts our_cuda_facts();
Facts vendor_cuda_facts();  // only a "missing" row with the reason if there is no vendor header

}  // namespace gantry::abi
