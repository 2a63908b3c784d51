// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/holders.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "gpu/device_users/node_search.hpp"
#include "gpu/nvml_child/cgroup.hpp"
#include "vm/vfio/system_unit_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

namespace gantry::vfio {
namespace {

constexpr std::size_t kShownCommand = 80;
constexpr std::size_t kSmallFile = 65536;
constexpr std::string_view kPodLogs = "/var/log/pods";

std::string process_file(std::uint32_t pid, std::string_view name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

std::string read_command(const sys::Host& host, std::uint32_t pid, const std::string& name) {
  const auto text = host.read(process_file(pid, "cmdline"), kSmallFile);
  std::string command = text.ok() ? *text : "";
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  if (command.empty()) return name;
  if (command.size() > kShownCommand) command = command.substr(0, kShownCommand - 3) + "...";
  return command;
}

// "4711 (gantry) D 1 ...": the words from the state on. The name may contain any character, so its
// end is the last ")".
std::vector<std::string_view> words_after_name(std::string_view stat) {
  const auto end = stat.rfind(") ");
  return end == std::string_view::npos ? std::vector<std::string_view>()
                                       : split(stat.substr(end + 2), ' ');
}

Holder describe_process(const sys::Host& host, std::uint32_t pid) {
  Holder holder{.pid = pid};
  holder.name = host.read_value(process_file(pid, "comm")).value_or("");
  holder.command = read_command(host, pid, holder.name);
  const auto cgroup = host.read(process_file(pid, "cgroup"), kSmallFile).value_or("");
  const auto owner = nvml_child::parse_cgroup_owner(cgroup);
  if (!owner.pod_uid.empty()) holder.pod = pod_name(host, owner.pod_uid);
  holder.unit = system_unit(host, pid, cgroup);
  return holder;
}

std::vector<std::uint32_t> processes(const sys::Host& host) {
  std::vector<std::uint32_t> pids;
  const auto names = host.list("/proc");
  if (!names.ok()) return pids;
  for (const auto& name : *names) {
    const auto pid = parse_u64(name);
    if (pid && *pid > 0 && *pid <= UINT32_MAX) pids.push_back(static_cast<std::uint32_t>(*pid));
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

// Processes of Gantry that wait in the kernel and cannot be killed now, as "PID START-TIME".
std::set<std::string> waiting_processes(const sys::Host& host) {
  constexpr std::size_t kStartTime = 19;  // words after the state, see proc(5)
  std::set<std::string> waiting;
  for (const auto pid : processes(host)) {
    const auto stat = host.read(process_file(pid, "stat"), kSmallFile);
    if (!stat.ok()) continue;
    const auto begin = stat->find('(');
    const auto words = words_after_name(*stat);
    if (begin == std::string::npos || words.empty()) continue;
    const auto name = std::string_view(*stat).substr(begin + 1);
    if (!name.starts_with("gantry") || words.front() != "D") continue;
    const auto start = words.size() > kStartTime ? words[kStartTime] : "";
    waiting.insert(fmt::format("{} {}", pid, start));
  }
  return waiting;
}

}  // namespace

std::string describe(const Holder& holder) {
  return fmt::format("pid {} ({}){}{} has {} open", holder.pid, printable(holder.command),
                     holder.pod.empty() ? "" : " of pod ", holder.pod, holder.node);
}

// The kubelet names a pod's log directory NAMESPACE_NAME_UID.
std::string pod_name(const sys::Host& host, const std::string& uid) {
  const auto names = host.list(kPodLogs);
  if (uid.empty() || !names.ok()) return uid;
  for (const auto& name : *names) {
    const auto parts = split(name, '_');
    if (parts.size() == 3 && parts[2] == uid) return fmt::format("{}/{}", parts[0], parts[1]);
  }
  return uid;
}

HolderSearch search_holders(const sys::Host& host, std::span<const std::string> nodes) {
  HolderSearch found;
  if (nodes.empty()) return found;
  const device_users::NodeSearch search(host, nodes);
  for (const auto pid : processes(host)) {
    const auto used = search.uses_of(pid);
    if (!used.ok()) found.unreadable.push_back(pid);
    if (!used.ok() || used->empty()) continue;
    auto holder = describe_process(host, pid);
    for (const auto& node : *used) {
      holder.node = node.path;
      holder.opens = node.opens;
      found.holders.push_back(holder);
    }
  }
  return found;
}

std::string describe_unreadable(std::span<const std::uint32_t> pids) {
  constexpr std::size_t kShown = 5;
  const auto shown = pids.first(std::min(pids.size(), kShown));
  return fmt::format("{} process{} cannot be looked into (pid {}{})", pids.size(),
                     pids.size() == 1 ? "" : "es", fmt::join(shown, ", "),
                     pids.size() > kShown ? ", ..." : "");
}

Status check_all_readable(const HolderSearch& search) {
  if (search.unreadable.empty()) return {};
  return Error(Errc::Busy, fmt::format("{}, so it cannot be known whether a process uses the GPU",
                                       describe_unreadable(search.unreadable)))
      .advise(kReadAllProcesses);
}

std::vector<Holder> find_holders(const sys::Host& host, std::span<const std::string> nodes) {
  return search_holders(host, nodes).holders;
}

// Every process is in this state for moments, such as while it reads its program from a disk.
bool has_stuck_writer(const sys::Host& host) {
  constexpr auto kMoment = std::chrono::seconds(1);
  constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
  const auto until = std::chrono::steady_clock::now() + kMoment;
  auto stuck = waiting_processes(host);
  while (!stuck.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kBetweenLooks);
    const auto now = waiting_processes(host);
    std::erase_if(stuck, [&](const std::string& process) { return !now.contains(process); });
  }
  return !stuck.empty();
}

}  // namespace gantry::vfio
