// SPDX-License-Identifier: Apache-2.0
// The vGPUs of a machine as plain values, the same for all kernel interfaces.
#pragma once

#include "gpu/model/inventory.hpp"
#include "gpu/model/pci_address.hpp"
#include "vm/vgpu/vgpu_type.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vgpu {

// How a GPU offers vGPUs. docs/vgpu.md has the table.
enum class Framework : std::uint8_t {
  None,        // the vGPU host driver is not loaded, or the GPU has no vGPUs
  VfsOff,      // SR-IOV, but no virtual function is enabled: nothing is offered yet
  MdevOnPf,    // mediated devices on the GPU itself: Pascal, Volta, Turing
  MdevOnVfs,   // one mediated device on each virtual function: Ampere on kernels before 6.8
  VendorVfio,  // the virtual function itself is the vGPU: nvidia/current_vgpu_type
};

std::string_view to_string(Framework framework);  // "none", "vfs-off", "mdev", "mdev-vf", "vfio"
std::string_view describe(Framework framework);   // a phrase for people

struct VgpuType {
  std::string id;    // as the kernel wants it: "nvidia-592" for mdev, "592" for vendor-VFIO
  std::string name;  // "NVIDIA A10-4Q"
  std::string key;   // "A10-4Q"
  std::uint64_t framebuffer_mib = 0;
  unsigned max_instances = 0;  // on the whole GPU; 0: unknown
  unsigned available = 0;      // how many more can be created now
  bool operator==(const VgpuType&) const = default;
};

struct Vgpu {
  model::PciAddress gpu;
  model::PciAddress parent;  // the GPU or one of its virtual functions
  std::string uuid;          // mdev only
  std::string type_id;
  std::string type;  // the key; "" if only the number is known
  std::optional<unsigned> iommu_group;
  std::optional<unsigned> placement;  // vendor-VFIO: where it is in the framebuffer
  std::vector<unsigned> holders;      // processes that have its VFIO node open
  bool operator==(const Vgpu&) const = default;

  // What commands call it: the UUID or, without one, the virtual function.
  std::string id() const { return uuid.empty() ? parent.sysfs() : uuid; }
};

struct VgpuParent {
  model::PciAddress address;
  std::vector<std::string> type_ids;  // that it offers, in use or not
};

struct VgpuGpu {
  unsigned index = 0;  // over the physical GPUs, by address
  model::PciAddress address;
  std::uint32_t vendor = 0;
  std::uint32_t device = 0;
  model::GpuUuid uuid;  // empty when the driver does not tell it
  Framework framework = Framework::None;
  std::string problem;  // why there are no vGPUs; "" if there can be
  bool silent = false;  // a read failed: it may have other vGPUs and types than those below
  unsigned total_vfs = 0;
  unsigned enabled_vfs = 0;
  std::uint64_t framebuffer_mib = 0;      // of its largest type: what all vGPUs share
  std::optional<unsigned> gpu_instances;  // of MIG; nullopt: unknown or MIG is off
  std::vector<VgpuType> types;            // by size, then name
  std::vector<VgpuParent> parents;
  std::vector<Vgpu> vgpus;  // by parent, then UUID

  std::string label() const;          // "GPU 0 (0000:3b:00.0)"
  std::string device_filter() const;  // "0x223610DE", as configurations name the model
  // Turing has SR-IOV in its configuration space, but its vGPUs are on the GPU itself: before
  // nvidia-vgpud has run it looks like a GPU whose virtual functions are off. It has no mixed
  // sizes.
  bool is_turing() const;
  const VgpuType* find_type(std::string_view key) const;
  const VgpuType* find_type_id(std::string_view id) const;
};

// By index, PCI address or UUID. nullptr if it does not exist.
const VgpuGpu* find_gpu(const std::vector<VgpuGpu>& gpus, std::string_view name);
const VgpuGpu* find_gpu(const std::vector<VgpuGpu>& gpus, const model::PciAddress& address);

}  // namespace gantry::vgpu
