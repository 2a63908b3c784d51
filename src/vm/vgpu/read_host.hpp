// SPDX-License-Identifier: Apache-2.0
// Reads the vGPUs of a machine from sysfs. It asks no library and changes nothing.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "vm/vgpu/vgpu_host.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gantry::vgpu {

// Names of types that were seen earlier, by "VENDOR:DEVICE" of the GPU, then by number. The list
// that vendor-VFIO offers shrinks as vGPUs are created, so it does not have the names of those in
// use.
using KnownTypes = std::map<std::string, std::map<std::string, std::string>>;

std::string known_types_key(const VgpuGpu& gpu);  // "10de:26b9"

inline constexpr std::size_t kMaxGpus = 64;
inline constexpr std::size_t kMaxVfs = 256;  // of one GPU

std::vector<VgpuGpu> read_host(const sys::Host& host, const KnownTypes& known = {});

// Adds the types that the machine shows now. Returns true if there was a new one.
bool remember_types(const std::vector<VgpuGpu>& gpus, KnownTypes& known);

std::string pci_directory(const model::PciAddress& address);  // "/sys/bus/pci/devices/..."

// The virtual functions of a GPU, in their order.
std::vector<model::PciAddress> virtual_functions(const sys::Host& host,
                                                 const model::PciAddress& gpu);

// The number of the type of the vGPU that a virtual function of vendor-VFIO has; "0" if it has
// none, or if the function or its driver has gone. Any other failure says nothing about the vGPU:
// Timeout if the driver does not answer.
Result<std::string> read_vendor_type(const sys::Host& host, const model::PciAddress& function);

// How many virtual functions are enabled, with the deadline that the device's lock needs.
Result<std::uint64_t> read_enabled_vfs(const sys::Host& host, const model::PciAddress& gpu);

// Whether the vGPU driver offers something on this function.
bool offers_vgpus(const sys::Host& host, const model::PciAddress& function);

}  // namespace gantry::vgpu
