// SPDX-License-Identifier: Apache-2.0
// The BPF program that controls device access in a cgroup v2, as a plain list of instructions: it
// allows our nodes and leaves everything else to the previous program.
#pragma once

#include "base/core/result.hpp"

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gantry::runtime {

// One character device with its exact number: read and write, never mknod, never a wildcard. With
// "m", a tenant could create the node of another tenant's GPU.
struct DeviceRule {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  bool operator==(const DeviceRule&) const = default;
  bool operator<(const DeviceRule& other) const {
    return major != other.major ? major < other.major : minor < other.minor;
  }
};

inline constexpr std::size_t kMaxDeviceRules = 1024;
inline constexpr std::size_t kMaxDeviceInstructions = 16384;  // runc's own has a few hundred

// Puts our rules before the instructions of `before`; skips rules that are already in front.
// Unsupported if `before` calls helpers or uses maps: such instructions cannot be loaded again.
// Invalid if `before` is empty or too long.
Result<std::vector<bpf_insn>> allow_first(std::span<const DeviceRule> rules,
                                          std::span<const bpf_insn> before);

}  // namespace gantry::runtime
