// SPDX-License-Identifier: Apache-2.0
// The GPUs of a simulated vGPU host, kept in a file of the tree.
#pragma once

#include "base/sys/host.hpp"
#include "sim/machine/machine.hpp"
#include "sim/machine/tree_writer.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

struct VgpuCard {
  model::PciAddress address;
  std::string framework;  // "mdev" or "vendor"
  std::uint32_t vfs = 0;  // virtual functions; 0: mediated devices are on the GPU itself
  std::uint32_t memory_mib = 0;
  bool mixed = false;  // different sizes are allowed
  std::vector<VgpuType> types;
  std::vector<std::string> instances;  // of MIG, by profile: "1g.5gb"; as the machine was made
};

std::string to_text(const std::vector<VgpuCard>& cards);
Result<std::vector<VgpuCard>> read_cards(const sys::Host& host);

model::PciAddress vf_address(const model::PciAddress& gpu, std::uint32_t index);
// The functions that carry vGPUs now: the GPU itself or its enabled virtual functions.
std::vector<model::PciAddress> vgpu_parents(const sys::Host& host, const VgpuCard& card);

struct LiveVgpu {
  model::PciAddress parent;
  std::string uuid;  // mdev
  std::uint32_t type = 0;
};
std::vector<LiveVgpu> live_vgpus(const sys::Host& host, const VgpuCard& card);
// How many more of this type the parent can take.
std::uint32_t vgpu_room(const VgpuCard& card, const std::vector<LiveVgpu>& live,
                        const model::PciAddress& parent, const VgpuType& type);

// Writes the files of a card's parents as they are now.
void write_parent_files(TreeWriter& out, const sys::Host& host, const VgpuCard& card);

}  // namespace gantry::sim
