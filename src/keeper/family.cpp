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

// A container whose root may make cgroups can call one of them as it likes: below one that is known
// no other name counts, neither to hide behind nor to draw a neighbour in.
bool Family::is_in_known_container(std::string_view cgroup) const {
  return std::any_of(containers_.begin(), containers_.end(), [&](const std::string& id) {
    return cgroup.find(id) != std::string_view::npos;
  });
}

void Family::know_container(pid_t pid) {
  know_container_of(cgroup_of(pid));
}

void Family::know_container_of(std::string_view cgroup) {
  if (is_in_known_container(cgroup)) return;
  auto owner = sensor::owner_of(cgroup);
  if (!owner.container_id.empty() && containers_.size() < kMostContainers)
    containers_.insert(std::move(owner.container_id));
}

bool Family::belongs(pid_t pid, const Record& record, const Members& members) const {
  const auto cgroup = cgroup_of(pid);
  for (const auto& group : groups_) {
    if (group.has(cgroup)) return true;
  }
  if (is_in_known_container(cgroup)) return true;
  if (!containers_.empty() && !sensor::owner_of(cgroup).container_id.empty()) return false;
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
