// SPDX-License-Identifier: Apache-2.0
//
// Properties of --query-gpu: name, other name, unit of the column, and the reading behind it.
#pragma once

#include "sim/nvidia-smi/readings.hpp"

namespace smi {

struct Property {
  const char* name = nullptr;
  const char* alias = nullptr;  // may be null
  const char* unit = "";        // "" = a text as it is; "-" = a number whose unit is not shown
  Read read = nullptr;
  Arg arg = {};
  bool bracket = true;  // "[N/A]" rather than "N/A"
  const char* about = "";
};

struct Properties {
  const Property* rows;
  size_t count;
};

Properties gpu_properties();

}  // namespace smi
