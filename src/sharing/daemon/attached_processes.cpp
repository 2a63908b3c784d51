// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/attached_processes.hpp"

#include <sys/epoll.h>

#include <fmt/format.h>

#include <utility>

namespace gantry::daemon {

AttachedProcesses::AttachedProcesses(sys::Loop& loop, SharedPages& pages, Callbacks callbacks)
    : loop_(loop), pages_(pages), callbacks_(std::move(callbacks)) {}

const AttachedProcess* AttachedProcesses::of_pid(pid_t pid) const {
  const auto* member = last_of_pid(pid);
  return member == nullptr || has_ended(member->pidfd.get()) ? nullptr : member;
}

const AttachedProcess* AttachedProcesses::last_of_pid(pid_t pid) const {
  const auto found = slots_.find(pid);
  return found == slots_.end() ? nullptr : by_slot_.at(found->second).get();
}

// The lowest free slot, because a sum reads all slots below the highest one in use.
std::optional<std::uint32_t> AttachedProcesses::free_slot() const {
  std::uint32_t slot = 0;
  for (const auto& [taken, member] : by_slot_) {
    if (taken != slot) break;
    ++slot;
  }
  if (slot >= FENCE_MAX_PROCESSES) return std::nullopt;
  return slot;
}

Result<std::uint32_t> AttachedProcesses::join(PeerIdentity identity) {
  if (has_ended(identity.pidfd.get())) return Error(Errc::NotFound, "the process has ended");
  if (const auto* known = last_of_pid(identity.pid); known != nullptr) {
    if (!has_ended(known->pidfd.get())) return known->slot;
    leave(known->slot);  // its end was not reported yet, and the pid is already reused
  }
  const auto slot = free_slot();
  if (!slot)
    return Error(Errc::Busy, fmt::format("{} processes already use this share",
                                         static_cast<int>(FENCE_MAX_PROCESSES)));
  auto member = std::make_unique<AttachedProcess>();
  member->pid = identity.pid;
  member->slot = *slot;
  member->attached_ns = monotonic_ns();
  member->started_ns = start_interval(identity.pid).earliest_ns;
  member->inner_pid = innermost_pid(identity.pid);
  member->pidfd = std::move(identity.pidfd);
  GANTRY_TRY(member->death, loop_.watch(member->pidfd.get(), EPOLLIN,
                                        [this, at = *slot](std::uint32_t) { leave(at); }));
  pages_.take_slot(*slot, static_cast<std::uint32_t>(member->pid), member->inner_pid);
  slots_[member->pid] = *slot;
  const auto& kept = *(by_slot_[*slot] = std::move(member));
  if (callbacks_.joined) callbacks_.joined(kept);
  return *slot;
}

void AttachedProcesses::connected(std::uint32_t slot) {
  const auto found = by_slot_.find(slot);
  if (found != by_slot_.end()) ++found->second->connections;
}

void AttachedProcesses::disconnected(pid_t pid, std::uint32_t slot) {
  const auto found = by_slot_.find(slot);
  if (found == by_slot_.end() || found->second->pid != pid) return;
  auto& member = *found->second;
  if (member.connections > 0 && --member.connections == 0) member.disconnected_ns = monotonic_ns();
}

void AttachedProcesses::leave(std::uint32_t slot) {
  const auto found = by_slot_.find(slot);
  if (found == by_slot_.end()) return;
  const auto member = std::move(found->second);
  by_slot_.erase(found);
  slots_.erase(member->pid);
  if (callbacks_.left) callbacks_.left(*member);
  pages_.free_slot(slot);
}

}  // namespace gantry::daemon
