// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/guest_nodes.hpp"

#include <fmt/format.h>

#include <map>

namespace gantry::hypervisor {
namespace {

// Memory in whole units, the rest to the first node. 1 GiB pages need whole GiB.
void share_out(const VmSpec& vm, std::vector<GuestNode>& nodes) {
  const auto count = nodes.size();
  const auto unit = vm.huge_pages == HugePages::Size1G ? kGiB : 2 * kMiB;
  const auto each = vm.memory_bytes / count / unit * unit;
  const int cpus = vm.cpus / static_cast<int>(count);
  int next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto& node = nodes[i];
    const bool last = i + 1 == count;
    node.memory_bytes = i == 0 ? vm.memory_bytes - each * (count - 1) : each;
    node.first_cpu = next;
    node.last_cpu = last ? vm.cpus - 1 : next + cpus - 1;
    next = node.last_cpu + 1;
  }
}

}  // namespace

std::string GuestNode::cpus() const {
  return first_cpu == last_cpu ? fmt::format("{}", first_cpu)
                               : fmt::format("{}-{}", first_cpu, last_cpu);
}

Result<std::vector<GuestNode>> guest_nodes(const VmSpec& vm) {
  std::map<int, GuestNode> known;
  GuestNode unknown;
  for (std::size_t i = 0; i < vm.gpus.size(); ++i) {
    const auto& gpu = vm.gpus[i];
    auto& node = gpu.numa_node ? known[*gpu.numa_node] : unknown;
    node.host_node = gpu.numa_node;
    node.host_cpus = gpu.numa_node ? gpu.cpu_list : "";
    node.gpus.push_back(i);
  }
  std::vector<GuestNode> nodes;
  for (auto& [number, node] : known) nodes.push_back(std::move(node));
  if (!unknown.gpus.empty() && nodes.size() == 1) {
    nodes.front().gpus.insert(nodes.front().gpus.end(), unknown.gpus.begin(), unknown.gpus.end());
  } else if (!unknown.gpus.empty()) {
    nodes.push_back(std::move(unknown));
  }
  if (nodes.size() > kMostGuestNodes) {
    return Error(Errc::Unsupported,
                 fmt::format("the GPUs are on {} NUMA nodes; a virtual machine can have GPUs of {}",
                             nodes.size(), kMostGuestNodes));
  }
  if (static_cast<int>(nodes.size()) > vm.cpus) {
    return Error(Errc::Invalid, fmt::format("the GPUs are on {} NUMA nodes, and each needs a "
                                            "processor; give at least --cpus {}",
                                            nodes.size(), nodes.size()));
  }
  for (const auto& node : nodes) {
    if (node.gpus.size() > kMostGpusOfNode) {
      return Error(Errc::Unsupported,
                   fmt::format("{} GPUs on one NUMA node; at most {} are possible",
                               node.gpus.size(), kMostGpusOfNode));
    }
  }
  share_out(vm, nodes);
  return nodes;
}

}  // namespace gantry::hypervisor
