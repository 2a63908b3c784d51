// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a socket, as the kernel says it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace gantry::daemon {

struct PeerIdentity {
  pid_t pid = 0;  // as we see it
  uid_t uid = 0;
  sys::UniqueFd pidfd;  // readable when the process has ended
};

// Denied for a peer that our pid namespace does not have; NotFound when it has ended, also when its
// number is somebody else's by now. `before`: when we began to accept it, on CLOCK_BOOTTIME: where
// the kernel does not hand out the peer's pidfd (before Linux 6.5), nobody who started later can be
// the one who connected.
Result<PeerIdentity> peer_identity(int socket, std::uint64_t before_ns);
std::uint64_t boottime_ns();
// That fallback: a pidfd for the number, if it has been that process's since before then.
Result<sys::UniqueFd> pidfd_if_started_before(pid_t pid, std::uint64_t before_ns);

bool has_ended(int pidfd);

// Facts from /proc of this machine, "" or 0 when it has ended.
std::uint32_t innermost_pid(pid_t pid);  // as the processes of its own namespace see it
std::string command_of(pid_t pid);
std::string cgroup_of(pid_t pid);  // the whole of /proc/PID/cgroup
pid_t parent_of(pid_t pid);

// The first process of the container whose hook is `client`: `named`, as a runtime that runs hooks
// beside the container says it; for one that runs them inside, in pids of their own, the first of
// those. 0: neither can be told.
pid_t container_init_pid(pid_t client, pid_t named);
std::uint64_t start_ticks(pid_t pid);  // in ticks since the machine's

}  // namespace gantry::daemon
