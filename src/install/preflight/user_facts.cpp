// SPDX-License-Identifier: Apache-2.0
// Who uses the driver that is there: processes with open nodes, containers with its files.
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "gpu/nvml_child/cgroup.hpp"
#include "install/preflight/driver_services.hpp"
#include "install/preflight/facts_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace gantry::preflight {
namespace {

std::vector<std::string> driver_nodes(const sys::Host& host) {
  std::vector<std::string> nodes;
  for (const auto* directory : {"/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"}) {
    for (auto& path : host.device_paths(directory)) {
      if (base_name(path).starts_with("nvidia") || base_name(path).starts_with("channel"))
        nodes.push_back(std::move(path));
    }
  }
  return nodes;
}

nvml_child::CgroupOwner owner_of(const sys::Host& host, std::uint32_t pid) {
  const auto cgroup = host.read(fmt::format("/proc/{}/cgroup", pid), kSmallFile);
  return cgroup.ok() ? nvml_child::parse_cgroup_owner(*cgroup) : nvml_child::CgroupOwner{};
}

void read_holders(const sys::Host& host, MachineFacts& facts) {
  const auto nodes = driver_nodes(host);
  auto search = vfio::search_holders(host, nodes);
  facts.unreadable = std::move(search.unreadable);
  for (const auto& holder : search.holders) {
    const bool same = !facts.holders.empty() && facts.holders.back().process.pid == holder.pid;
    if (!same) {
      facts.holders.push_back({.process = holder,
                               .nodes = {},
                               .opens = 0,
                               .container = owner_of(host, holder.pid).container_id,
                               .is_service = is_service_process(holder)});
    }
    facts.holders.back().nodes.push_back(holder.node);
    facts.holders.back().opens += holder.opens;
  }
}

// Whether the files of a driver are mounted into this process's file system.
bool has_driver_files(std::string_view mountinfo) {
  constexpr std::array<std::string_view, 5> kParts{"libcuda.so", "libnvidia-", "/dev/nvidia",
                                                   "/usr/local/nvidia",
                                                   "/home/kubernetes/bin/nvidia"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return contains(mountinfo, part); });
}

std::string command_of(const sys::Host& host, std::uint32_t pid) {
  return host.read_value(fmt::format("/proc/{}/comm", pid)).value_or("");
}

std::vector<std::uint32_t> processes_of(const sys::Host& host) {
  std::vector<std::uint32_t> pids;
  const auto names = host.list("/proc").value_or({});
  for (const auto& name : names) {
    const auto pid = parse_u64(name);
    if (pid && *pid > 0 && *pid <= UINT32_MAX) pids.push_back(static_cast<std::uint32_t>(*pid));
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

// The first process of each container, by container. Containers with a process of Gantry are left
// out: they are prepared for a change of the driver, and one of them may be this very one.
std::map<std::string, std::uint32_t> find_containers(const sys::Host& host) {
  std::map<std::string, std::uint32_t> first;
  std::vector<std::string> ours;
  for (const auto pid : processes_of(host)) {
    const auto id = owner_of(host, pid).container_id;
    if (id.empty()) continue;
    first.try_emplace(id, pid);
    if (command_of(host, pid).starts_with("gantry")) ours.push_back(id);
  }
  for (const auto& id : ours) first.erase(id);
  return first;
}

void read_containers(const sys::Host& host, MachineFacts& facts) {
  for (const auto& [id, pid] : find_containers(host)) {
    const auto mounts = host.read(fmt::format("/proc/{}/mountinfo", pid), kMountsLimit);
    if (!mounts.ok() || !has_driver_files(*mounts)) continue;
    facts.containers.push_back({.id = id,
                                .pod = vfio::pod_name(host, owner_of(host, pid).pod_uid),
                                .pid = pid,
                                .command = command_of(host, pid)});
  }
  std::sort(facts.containers.begin(), facts.containers.end(),
            [](const ContainerFact& a, const ContainerFact& b) { return a.pid < b.pid; });
}

}  // namespace

void read_users(const sys::Host& host, MachineFacts& facts) {
  read_holders(host, facts);
  read_containers(host, facts);
}

}  // namespace gantry::preflight
