// SPDX-License-Identifier: Apache-2.0
#include "keeper/family.hpp"

#include "keeper/identity.hpp"
#include "sensor/cgroup.hpp"

#include <algorithm>
#include <utility>

namespace gantry::keeper {
namespace {

constexpr int kGenerations = 64;
constexpr std::size_t kMostKnown = 4096;
constexpr std::size_t kMostGroups = 64;
constexpr std::size_t kMostContainers = 256;

bool is_any(const std::vector<KnownProcess>& list, const KnownProcess& process) {
  return std::find(list.begin(), list.end(), process) != list.end();
}

}  // namespace

void Family::adopt(const KnownProcess& process, std::string_view share) {
  if (groups_.size() < kMostGroups) groups_.push_back(ProcessGroup::around(process.pid, share));
}

void Family::joined(const Member& member) {
  know_container(member.pid);
}

void Family::know_container(pid_t pid) {
  auto owner = sensor::owner_of(cgroup_of(pid));
  if (!owner.container_id.empty() && containers_.size() < kMostContainers)
    containers_.insert(std::move(owner.container_id));
}

bool Family::belongs(pid_t pid, const Record& record, const Members& members) const {
  const auto cgroup = cgroup_of(pid);
  for (const auto& group : groups_) {
    if (group.has(cgroup)) return true;
  }
  if (!containers_.empty()) {
    const auto owner = sensor::owner_of(cgroup);
    if (!owner.container_id.empty()) return containers_.count(owner.container_id) != 0;
  }
  for (int i = 0; i < kGenerations && pid > 1; ++i, pid = parent_of(pid)) {
    const auto process = known_process(pid);
    const auto known = known_.find(pid);
    if (members.of_pid(pid) != nullptr || is_any(record.adopted, process) ||
        is_any(record.contained, process) ||
        (known != known_.end() && known->second == process.started))
      return true;
    // Not the holder itself, but orphans that it took in.
    if (i > 0 && record.holder == process) return true;
  }
  return false;
}

bool Family::has(pid_t pid, const Record& record, const Members& members) {
  const auto process = known_process(pid);
  if (process.started == 0) return false;
  const auto found = known_.find(pid);
  if (found != known_.end() && found->second == process.started) return true;
  if (!belongs(pid, record, members)) return false;
  if (known_.size() >= kMostKnown)
    std::erase_if(known_, [](const auto& one) { return start_of(one.first) != one.second; });
  if (known_.size() < kMostKnown) known_[pid] = process.started;
  return true;
}

}  // namespace gantry::keeper
