// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/holders.hpp"

#include "base/core/text.hpp"
#include "vm/vgpu/read_host.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::vgpu {
namespace {

void add_descriptors(const sys::Host& host, unsigned pid, OpenVfioNodes& open) {
  const auto directory = fmt::format("/proc/{}/fd", pid);
  for (const auto& name : host.list(directory).value_or({})) {
    const auto target = host.link(directory + "/" + name).value_or("");
    if (!target.starts_with("/dev/vfio/") || target == "/dev/vfio/vfio") continue;
    auto& pids = open[target];
    if (pids.empty() || pids.back() != pid) pids.push_back(pid);
  }
}

// The node of the interface of iommufd, which has the device instead of its group.
std::string device_node(const sys::Host& host, const Vgpu& vgpu) {
  const auto device =
      vgpu.uuid.empty() ? pci_directory(vgpu.parent) : "/sys/bus/mdev/devices/" + vgpu.uuid;
  const auto names = host.list(device + "/vfio-dev").value_or({});
  return names.empty() ? "" : "/dev/vfio/devices/" + names.front();
}

}  // namespace

OpenVfioNodes open_vfio_nodes(const sys::Host& host) {
  OpenVfioNodes open;
  for (const auto& name : host.list("/proc").value_or({})) {
    const auto pid = parse_u64(name);
    if (pid && *pid <= UINT32_MAX) add_descriptors(host, static_cast<unsigned>(*pid), open);
  }
  return open;
}

std::string vfio_node(const Vgpu& vgpu) {
  return vgpu.iommu_group ? fmt::format("/dev/vfio/{}", *vgpu.iommu_group) : "";
}

std::vector<unsigned> holders_of(const sys::Host& host, const Vgpu& vgpu,
                                 const OpenVfioNodes& open) {
  std::vector<unsigned> pids;
  for (const auto& node : {vfio_node(vgpu), device_node(host, vgpu)}) {
    if (const auto found = open.find(node); found != open.end())
      pids.insert(pids.end(), found->second.begin(), found->second.end());
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace gantry::vgpu
