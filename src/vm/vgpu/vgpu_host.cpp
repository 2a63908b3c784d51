// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/vgpu_host.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::vgpu {

std::string_view to_string(Framework framework) {
  switch (framework) {
    case Framework::None: return "none";
    case Framework::VfsOff: return "vfs-off";
    case Framework::MdevOnPf: return "mdev";
    case Framework::MdevOnVfs: return "mdev-vf";
    case Framework::VendorVfio: return "vfio";
  }
  return "none";
}

std::string_view describe(Framework framework) {
  switch (framework) {
    case Framework::None: return "no vGPUs";
    case Framework::VfsOff: return "SR-IOV, virtual functions not enabled";
    case Framework::MdevOnPf: return "mdev on the GPU";
    case Framework::MdevOnVfs: return "mdev on virtual functions";
    case Framework::VendorVfio: return "vendor-VFIO";
  }
  return "no vGPUs";
}

std::string VgpuGpu::label() const {
  return fmt::format("GPU {} ({})", index, address.sysfs());
}

bool VgpuGpu::is_turing() const {
  return device >= 0x1e00 && device <= 0x1fff;
}

std::string VgpuGpu::device_filter() const {
  return fmt::format("0x{:04X}{:04X}", device, vendor);
}

const VgpuType* VgpuGpu::find_type(std::string_view key) const {
  const auto found = std::find_if(types.begin(), types.end(),
                                  [&](const VgpuType& type) { return type.key == key; });
  return found == types.end() ? nullptr : &*found;
}

const VgpuType* VgpuGpu::find_type_id(std::string_view id) const {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const VgpuType& type) { return type.id == id; });
  return found == types.end() ? nullptr : &*found;
}

const VgpuGpu* find_gpu(const std::vector<VgpuGpu>& gpus, const model::PciAddress& address) {
  const auto found = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const VgpuGpu& gpu) { return gpu.address == address; });
  return found == gpus.end() ? nullptr : &*found;
}

const VgpuGpu* find_gpu(const std::vector<VgpuGpu>& gpus, std::string_view name) {
  const auto index = parse_u64(name);
  const auto address = index ? std::nullopt : model::PciAddress::parse(name);
  for (const auto& gpu : gpus) {
    const bool named = index ? gpu.index == *index
                       : address
                           ? gpu.address == *address
                           : !gpu.uuid.text.empty() && to_lower(gpu.uuid.text) == to_lower(name);
    if (named) return &gpu;
  }
  return nullptr;
}

}  // namespace gantry::vgpu
