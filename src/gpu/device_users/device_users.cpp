// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_users/device_users.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "gpu/device_users/node_search.hpp"
#include "gpu/nvml_child/cgroup.hpp"
#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/mig.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::device_users {
namespace {

constexpr std::size_t kCgroupLimit = std::size_t{64} << 10U;
constexpr std::size_t kCommandLimit = std::size_t{4}
                                      << 20U;  // more than the kernel allows by default
constexpr std::size_t kShownLine = 80;

void add_names(const sys::Host& host, const std::string& directory, std::string_view prefix,
               std::vector<std::string>& nodes) {
  const auto names = host.list(directory);
  if (!names.ok()) return;
  for (const auto& name : *names) {
    const bool is_node =
        name.starts_with("card") || name.starts_with("renderD") || name.starts_with("vfio");
    if (is_node) nodes.push_back(fmt::format("{}{}", prefix, name));
  }
}

std::string command_line(const sys::Host& host, std::uint32_t pid) {
  auto line = host.read(fmt::format("/proc/{}/cmdline", pid), kCommandLimit).value_or("");
  while (!line.empty() && line.back() == '\0') line.pop_back();
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line.size() <= kShownLine ? line : line.substr(0, kShownLine - 3) + "...";
}

// "4711 (name) S 1 ...": the name may contain any character, so its end is the last ")".
std::uint32_t parent_of(const sys::Host& host, std::uint32_t pid) {
  const auto stat = host.read(fmt::format("/proc/{}/stat", pid), kCgroupLimit).value_or("");
  const auto end = stat.rfind(") ");
  if (end == std::string::npos) return 0;
  const auto fields = split(std::string_view(stat).substr(end + 2), ' ');
  const auto parent = fields.size() > 1 ? parse_u64(fields[1]) : std::nullopt;
  return parent && *parent <= UINT32_MAX ? static_cast<std::uint32_t>(*parent) : 0;
}

DeviceUser user_of(const sys::Host& host, std::uint32_t pid, std::string node) {
  const auto cgroup = host.read(fmt::format("/proc/{}/cgroup", pid), kCgroupLimit);
  return {.pid = pid,
          .parent = parent_of(host, pid),
          .command = host.read_value(fmt::format("/proc/{}/comm", pid)).value_or(""),
          .line = command_line(host, pid),
          .pod_uid = cgroup.ok() ? nvml_child::parse_cgroup_owner(*cgroup).pod_uid : "",
          .node = std::move(node)};
}

}  // namespace

std::string describe(const DeviceUser& user) {
  auto text = fmt::format("process {}", user.pid);
  const auto& shown = user.line.empty() ? user.command : user.line;
  if (!shown.empty()) text += fmt::format(" ({})", printable(shown));
  if (!user.pod_uid.empty()) text += fmt::format(" of pod {}", printable(user.pod_uid));
  return text + fmt::format(" with {} open", user.node);
}

Result<std::vector<std::string>> device_nodes(const sys::Host& host, const model::PciAddress& gpu) {
  std::vector<std::string> nodes;
  const auto known = procfs::read_gpu(host, gpu);
  if (!known.ok() && known.error().code() == Errc::Timeout) return known.error();
  if (known.ok() && known->gpu.minor) {
    nodes.push_back(fmt::format("/dev/nvidia{}", *known->gpu.minor));
    for (const auto minor : procfs::mig_capability_minors(host, *known->gpu.minor))
      nodes.push_back(fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor));
  }
  const auto device = fmt::format("/sys/bus/pci/devices/{}", gpu.sysfs());
  add_names(host, device + "/drm", "/dev/dri/", nodes);
  add_names(host, device + "/vfio-dev", "/dev/vfio/devices/", nodes);
  if (const auto group = host.link(device + "/iommu_group"); group.ok())
    nodes.push_back(fmt::format("/dev/vfio/{}", group->substr(group->rfind('/') + 1)));
  return nodes;
}

Result<std::vector<DeviceUser>> find_users(const sys::Host& host, const model::PciAddress& gpu) {
  GANTRY_TRY(const auto nodes, device_nodes(host, gpu));
  return find_node_users(host, nodes);
}

Result<std::vector<DeviceUser>> find_node_users(const sys::Host& host,
                                                const std::vector<std::string>& nodes) {
  std::vector<DeviceUser> users;
  if (nodes.empty()) return users;
  GANTRY_TRY(const auto names, host.list("/proc").in("finding the users of a GPU"));
  const NodeSearch search(host, nodes);
  for (const auto& name : names) {
    const auto number = parse_u64(name);
    if (!number || *number > UINT32_MAX) continue;
    const auto pid = static_cast<std::uint32_t>(*number);
    const auto used = search.used_by(pid);
    if (!used.ok()) {
      return Error(used.error())
          .in("finding the processes that use the GPU")
          .advise("run the command as root: sudo");
    }
    if (!used->empty()) users.push_back(user_of(host, pid, used->front()));
  }
  std::sort(users.begin(), users.end(),
            [](const DeviceUser& a, const DeviceUser& b) { return a.pid < b.pid; });
  return users;
}

}  // namespace gantry::device_users
