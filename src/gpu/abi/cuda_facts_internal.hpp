// SPDX-License-Identifier: Apache-2.0
// The body of a facts function; see cuda_facts.hpp.
#pragma once

#include "gpu/abi/cuda_facts.hpp"

namespace gantry::abi {

// Types of entry points are compared by their mangled names: the tags of structs and enums are the
// vendor's.
static Facts collect_facts() {
  Facts facts;
#define VALUE(name) facts["value " #name] = std::to_string(static_cast<long>(name));
#define SIZE(type) facts["sizeof " #type] = std::to_string(sizeof(type));
#define OFFSET(type, member) \
  facts["offset " #type "." #member] = std::to_string(offsetof(type, member));
#include "gpu/abi/cuda_facts.def"
#define CUDA_RESULT(name, value, text) \
  facts["value " #name] = std::to_string(static_cast<long>(name));
#include "gpu/abi/cuda_results.def"
#define CUDA_ATTRIBUTE(name, value) \
  facts["attribute " #name] = std::to_string(static_cast<long>(CU_DEVICE_ATTRIBUTE_##name));
#include "gpu/abi/cuda_attributes.def"
#define CUDA_ENTRY(symbol, base, since, parameters, arguments) \
  facts["type of " #symbol] = typeid(symbol).name();
#include "gpu/abi/cuda_entries.def"
  return facts;
}

}  // namespace gantry::abi
