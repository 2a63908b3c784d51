// SPDX-License-Identifier: Apache-2.0
// The processes of a share that use CUDA. Each has a slot of the shared pages from its first hello
// until the kernel reports its end. In between it may open and close several sockets.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "sharing/daemon/peer_identity.hpp"
#include "sharing/daemon/shared_pages.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace gantry::daemon {

struct AttachedProcess {
  pid_t pid = 0;
  std::uint32_t slot = 0;
  std::uint32_t inner_pid = 0;
  std::uint32_t connections = 0;
  std::uint64_t attached_ns = 0;      // when it attached to this daemon
  std::uint64_t started_ns = 0;       // not before this, on CLOCK_BOOTTIME
  std::uint64_t disconnected_ns = 0;  // since when it has no socket
  sys::UniqueFd pidfd;
  sys::Loop::Watch death;
};

class AttachedProcesses {
 public:
  using OnChange = std::function<void(const AttachedProcess&)>;
  struct Callbacks {
    OnChange joined;
    OnChange left;  // its rows still exist
  };
  // `loop` and `pages` must outlive this object.
  AttachedProcesses(sys::Loop& loop, SharedPages& pages, Callbacks callbacks);
  AttachedProcesses(const AttachedProcesses&) = delete;
  AttachedProcesses& operator=(const AttachedProcesses&) = delete;

  // Returns the slot of this process: its current one, or a new one. Busy if all slots are in use,
  // NotFound if the process has ended: another process may have its pid.
  Result<std::uint32_t> join(PeerIdentity identity);

  // Counts the process's sockets. A process without a socket and without GPU memory has become
  // another program by exec.
  void connected(std::uint32_t slot);
  void disconnected(pid_t pid, std::uint32_t slot);

  const std::map<std::uint32_t, std::unique_ptr<AttachedProcess>>& by_slot() const {
    return by_slot_;
  }
  // nullptr if that process has ended, even if its end was not reported yet: another process may
  // have its pid.
  const AttachedProcess* of_pid(pid_t pid) const;

 private:
  const AttachedProcess* last_of_pid(pid_t pid) const;
  void leave(std::uint32_t slot);
  std::optional<std::uint32_t> free_slot() const;

  sys::Loop& loop_;
  SharedPages& pages_;
  Callbacks callbacks_;
  std::map<std::uint32_t, std::unique_ptr<AttachedProcess>> by_slot_;
  std::map<pid_t, std::uint32_t> slots_;
};

}  // namespace gantry::daemon
