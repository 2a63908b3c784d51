// SPDX-License-Identifier: Apache-2.0
// The properties of one device, and how they are printed.
#pragma once

#include "gpu/abi/cuda.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

namespace gantry::workload {

inline constexpr int kAttributes = 160;

struct Report {
  CUdevice device = 0;
  int ordinal = 0;
  std::string name;
  int driver_version = 0;
  std::size_t total_bytes = 0;
  std::array<int, kAttributes> value{};

  int operator[](CUdevice_attribute which) const { return value[static_cast<std::size_t>(which)]; }
};

void print_report(const Report& report, std::FILE* out);

}  // namespace gantry::workload
