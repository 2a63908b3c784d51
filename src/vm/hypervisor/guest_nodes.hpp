// SPDX-License-Identifier: Apache-2.0
// The NUMA nodes that a virtual machine gets: one for each node of the host that has one of its
// GPUs, so that the guest's kernel finds a node for every GPU instead of -1.
#pragma once

#include "base/core/result.hpp"
#include "vm/hypervisor/guest_gpu.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gantry::hypervisor {

struct GuestNode {
  std::optional<int> host_node;  // nullopt: the GPUs' node is unknown, memory comes from anywhere
  std::string host_cpus;         // "0-15"; "" when unknown
  int first_cpu = 0;             // of the guest
  int last_cpu = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<std::size_t> gpus;  // indices into VmSpec::gpus
  std::string cpus() const;       // "0-7" or "3"
};

// At most this many: each has a range of PCI bus numbers for its GPUs.
constexpr std::size_t kMostGuestNodes = 7;
constexpr std::size_t kMostGpusOfNode = 30;

// By host node, unknown nodes last, but GPUs with an unknown node join the only known one. Invalid
// if there are more nodes than processors.
Result<std::vector<GuestNode>> guest_nodes(const VmSpec& vm);

}  // namespace gantry::hypervisor
