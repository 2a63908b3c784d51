// SPDX-License-Identifier: Apache-2.0
// How many addresses above 4 GiB the firmware of a virtual machine needs for the memory windows
// (BARs) of its GPUs. If there are too few, the guest's driver says "This PCI I/O region assigned
// to your NVIDIA device is invalid".
#pragma once

#include "vm/hypervisor/guest_gpu.hpp"

#include <cstdint>
#include <span>

namespace gantry::hypervisor {

// What OVMF, and q35 without an option, reserve by themselves.
constexpr std::uint64_t kDefaultWindow = 32 * kGiB;
// OVMF ignores a larger X-PciMmio64Mb.
constexpr std::uint64_t kLargestWindow = 16 * 1024 * kGiB;

std::uint64_t round_up_to_power_of_two(std::uint64_t bytes);  // 0 stays 0

std::uint64_t bar_bytes(const GuestGpu& gpu);

// For QEMU and everything that starts it. Each GPU is behind a bridge of its own, whose window
// begins at a multiple of its largest BAR: a 256 GiB BAR and two small ones take 512 GiB. So each
// GPU's sum is rounded up to a power of two, and so is the total.
std::uint64_t mmio_window(std::span<const GuestGpu> gpus);

// For pciPassthru.64bitMMIOSizeGB: the memory of all GPUs in GB, rounded up to a power of two, then
// doubled (two A100 with 80 GB: 160, 256, 512). At least what the BARs need.
std::uint64_t esxi_window_gb(std::span<const GuestGpu> gpus);

// ESXi maps up to 16 GB without pciPassthru.use64bitMMIO.
bool esxi_needs_64bit(std::span<const GuestGpu> gpus);

// What may be locked in memory: VFIO pins all memory of the guest, QEMU needs some more.
std::uint64_t locked_memory(std::uint64_t guest_bytes);

}  // namespace gantry::hypervisor
