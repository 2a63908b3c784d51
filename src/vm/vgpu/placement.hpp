// SPDX-License-Identifier: Apache-2.0
// Where vGPUs of different sizes go in the framebuffer of one GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gantry::vgpu {

struct PlacedVgpu {
  std::uint64_t start_mib = 0;
  std::uint64_t size_mib = 0;
  bool operator==(const PlacedVgpu&) const = default;
};

// Places vGPUs of these sizes beside those that exist, as the driver does in mixed-size mode. The
// framebuffer is halved again and again, into at most 16 parts, and a vGPU has one place in each of
// the smallest parts that hold it: at the front of the first, third, ... part and at the end of the
// second, fourth, ... That gives the tables of NVIDIA's vGPU user guide for GPUs with 16 and 48 GB
// (a 16 GB vGPU in 48 GB: 0 and 32); GPUs of other sizes were not compared.
//
// It takes the largest first and the lowest free place for each: the driver chooses the place, so
// only an order of creation can be asked for. Returns the new ones in the order in which they must
// be created; nullopt if they do not fit in that way.
std::optional<std::vector<PlacedVgpu>> place_mixed(std::uint64_t total_mib,
                                                   std::vector<PlacedVgpu> existing,
                                                   std::vector<std::uint64_t> sizes_mib);

}  // namespace gantry::vgpu
