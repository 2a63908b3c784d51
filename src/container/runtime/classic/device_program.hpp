// SPDX-License-Identifier: Apache-2.0
// The BPF program that decides about device nodes in a cgroup v2, as a plain list of instructions:
// our nodes are allowed, about everything else decides the program that was there before.
#pragma once

#include "base/core/result.hpp"

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gantry::runtime {

// One character device, by its exact number: read and write, never mknod, never a wildcard. With
// "m" a tenant could make itself the neighbour's node.
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

// `before` with our rules in front. Rules that are in front already are not put there twice.
// Unsupported when `before` calls helpers or uses maps: its instructions cannot be loaded a second
// time. Invalid when there is nothing before, or too much.
Result<std::vector<bpf_insn>> allow_first(std::span<const DeviceRule> rules,
                                          std::span<const bpf_insn> before);

}  // namespace gantry::runtime
