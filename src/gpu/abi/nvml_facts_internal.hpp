// SPDX-License-Identifier: Apache-2.0
// Macros for the lists. A file includes one of the two headers before this one. Types of functions
// are compared by their mangled names: the tags of structs and enums are the vendor's.
#pragma once

#include "gpu/abi/nvml_facts.hpp"

#include <cstddef>
#include <typeinfo>

#define GANTRY_STRUCT(type, size) facts["sizeof " #type] = std::to_string(sizeof(type));
#define GANTRY_FIELD(type, member, offset) \
  facts["offset " #type "." #member] = std::to_string(offsetof(type, member));
#define GANTRY_CONSTANT(name, value) \
  facts["value " #name] = std::to_string(static_cast<long long>(name));
#define GANTRY_NVML(since, function, parameters) \
  facts["type of " #function] = typeid(function).name();
