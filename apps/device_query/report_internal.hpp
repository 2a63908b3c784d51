// SPDX-License-Identifier: Apache-2.0
// The properties of one device, and how they are printed.
#pragma once

#include "gpu/abi/cuda.h"

#include <array>
#include <cstddef>
#include <cstdint>
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

// NVIDIA's samples whose lines we print. deviceQuery asks the CUDA runtime, which we do not
// contain; where it shows the runtime's version, we say that there is none.
enum class Sample : std::uint8_t { DeviceQueryDrv, DeviceQuery };

std::string version_text(int version);  // "13.0"
void print_report(const Report& report, Sample sample, std::FILE* out);

}  // namespace gantry::workload
