// SPDX-License-Identifier: Apache-2.0
// A machine as a virtual machine host: its PCI functions become devices of QEMU, its driver becomes
// text that the simulated kernel module reads. Everything here is a pure function; `gantry sim
// boot` starts the result. docs/simulated-machines.md says what is the same and what is not.
#pragma once

#include "base/core/result.hpp"
#include "sim/machine/machine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::sim {

// QEMU's IOMMU has 39 bits, and eight GPUs with 256 GiB each do not fit. BARs above 32 MiB are
// divided by this number.
inline constexpr std::uint32_t kBarDivisor = 4096;

struct BootOptions {
  std::string parts = {};      // what tools/vm-prepare made: kernels, modules, the PCI device
  std::string kernel = "6.1";  // a folder of `parts`
  std::uint32_t memory_mib = 1024;
  std::string cpu = "qemu64";
  std::uint32_t bar_divisor = kBarDivisor;
  bool iommu = true;
  std::string kernel_parameters = {};  // further ones, such as intel_iommu=off
  std::string disk = {};    // an ext4 file system for all changes; "" = they are lost at the end
  std::string script = {};  // shell commands that the host runs; "" = a shell for a person
  std::vector<std::string> more = {};  // further arguments of QEMU
};

// The firmware numbers buses without gaps, so a function may get another address than described.
struct BootFunction {
  model::PciAddress described, booted;
  bool operator==(const BootFunction&) const = default;
};

struct BootPlan {
  std::string preload;             // the library for LD_PRELOAD
  std::vector<std::string> qemu;   // program and arguments
  std::string description;         // what the kernel module reads
  std::vector<BootFunction> gpus;  // in the machine's order
};

// Unsupported if QEMU has no way to build the machine's PCI tree. Functions of other vendors are
// left out, apart from the bridges above NVIDIA's.
Result<BootPlan> plan_boot(const Machine& machine, const BootOptions& options);

}  // namespace gantry::sim
