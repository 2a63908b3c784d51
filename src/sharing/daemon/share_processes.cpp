// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/share_processes.hpp"

#include "base/core/text.hpp"
#include "gpu/nvml_child/cgroup.hpp"
#include "sharing/daemon/peer_identity.hpp"

#include <algorithm>
#include <utility>

namespace gantry::daemon {
namespace {

constexpr int kMaxAncestors = 64;
constexpr std::size_t kMostKnown = 4096;
constexpr std::size_t kMostGroups = 64;
constexpr std::size_t kMostContainers = 256;

// "0::/system.slice/docker-ID.scope" from a line of /proc/PID/cgroup, without anything below it.
std::string_view container_cgroup(std::string_view line, std::string_view id) {
  const auto at = line.find(id);
  return at == std::string_view::npos ? std::string_view{} : line.substr(0, line.find('/', at));
}

bool is_any(const std::vector<ProcessRef>& list, const ProcessRef& process) {
  return std::find(list.begin(), list.end(), process) != list.end();
}

}  // namespace

std::string ShareProcesses::adopt(const ProcessRef& process, std::string_view share) {
  if (groups_.size() >= kMostGroups) return "";
  groups_.push_back(ShareCgroup::create_around(process.pid, share));
  return groups_.back().directory();
}

void ShareProcesses::joined(const AttachedProcess& member) {
  add_container(member.pid);
}

// A container's root or a user of the host may create cgroups with any name. So a container is
// identified by the cgroup's path, which the kernel reports, and not by its name: a chosen name can
// neither hide a process nor include another container's.
bool ShareProcesses::is_in_container(std::string_view cgroup) const {
  const auto all = lines(cgroup);
  return std::any_of(all.begin(), all.end(), [&](std::string_view line) {
    return std::any_of(containers_.begin(), containers_.end(), [&](const std::string& place) {
      return line.starts_with(place) && (line.size() == place.size() || line[place.size()] == '/');
    });
  });
}

void ShareProcesses::add_container(pid_t pid) {
  add_container_of(cgroup_of(pid));
}

void ShareProcesses::add_container_of(std::string_view cgroup) {
  if (is_in_container(cgroup)) return;
  const auto id = nvml_child::parse_cgroup_owner(cgroup).container_id;
  if (id.empty()) return;
  for (const auto line : lines(cgroup)) {
    if (const auto place = container_cgroup(line, id);
        !place.empty() && containers_.size() < kMostContainers)
      containers_.emplace(place);
  }
}

bool ShareProcesses::belongs(pid_t pid, const ShareRecord& record,
                             const AttachedProcesses& attached_processes) const {
  const auto cgroup = cgroup_of(pid);
  for (const auto& group : groups_) {
    if (group.has(cgroup)) return true;
  }
  if (is_in_container(cgroup)) return true;
  if (!containers_.empty() && !nvml_child::parse_cgroup_owner(cgroup).container_id.empty())
    return false;
  for (int i = 0; i < kMaxAncestors && pid > 1; ++i, pid = parent_of(pid)) {
    const auto process = process_ref(pid);
    const auto known = known_.find(pid);
    if (attached_processes.of_pid(pid) != nullptr || is_any(record.adopted, process) ||
        is_any(record.contained, process) ||
        (known != known_.end() && known->second == process.started))
      return true;
    // Not the holder itself, but orphans that it adopted.
    if (i > 0 && record.holder == process) return true;
  }
  return false;
}

bool ShareProcesses::has(pid_t pid, const ShareRecord& record,
                         const AttachedProcesses& attached_processes) {
  const auto process = process_ref(pid);
  if (process.started == 0) return false;
  const auto found = known_.find(pid);
  if (found != known_.end() && found->second == process.started) return true;
  if (!belongs(pid, record, attached_processes)) return false;
  if (known_.size() >= kMostKnown)
    std::erase_if(known_, [](const auto& one) { return start_ticks(one.first) != one.second; });
  if (known_.size() < kMostKnown) known_[pid] = process.started;
  return true;
}

}  // namespace gantry::daemon
