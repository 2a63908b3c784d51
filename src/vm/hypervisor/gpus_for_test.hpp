// SPDX-License-Identifier: Apache-2.0
// Real cards at addresses of a host with two NUMA nodes, for tests.
#pragma once

#include "vm/hypervisor/guest_gpu.hpp"
#include "vm/hypervisor/known_cards.hpp"

#include <string_view>

namespace gantry::hypervisor {

// A card that is bound to vfio-pci.
inline GuestGpu card_at(std::string_view card, std::string_view address, int node) {
  auto gpu = *card_by_name(card);
  gpu.address = *model::PciAddress::parse(address);
  gpu.numa_node = node;
  gpu.cpu_list = node == 0 ? "0-15" : "16-31";
  gpu.driver = "vfio-pci";
  return gpu;
}

inline GuestGpu with_audio(GuestGpu gpu) {
  auto audio = gpu.address;
  audio.function = 1;
  gpu.companions = {audio};
  gpu.class_code = 0x030000;
  return gpu;
}

inline GuestGpu mdev_at(std::string_view address, std::string_view uuid) {
  auto gpu = card_at("t4", address, 0);
  gpu.attachment = Attachment::Mdev;
  gpu.mdev_uuid = uuid;
  gpu.vgpu_type = "nvidia-230";
  gpu.driver = "nvidia";
  return gpu;
}

inline GuestGpu vendor_vf_at(std::string_view address) {
  auto gpu = card_at("h200", address, 0);
  gpu.attachment = Attachment::VendorVfio;
  gpu.vgpu_type = "1104";
  gpu.driver = "nvidia";
  return gpu;
}

}  // namespace gantry::hypervisor
