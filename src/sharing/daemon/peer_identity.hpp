// SPDX-License-Identifier: Apache-2.0
// Identifies the process at the other end of a socket, as reported by the kernel.
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
  sys::UniqueFd pidfd;  // becomes readable when the process ends
};

// Denied if the peer is not in our pid namespace. NotFound if it has ended, even if another process
// has its pid now. `before`: when we began to accept it, on CLOCK_BOOTTIME. If the kernel does not
// provide the peer's pidfd (before Linux 6.5), a process that started later cannot be the peer, and
// neither can any process if the other end of the socket is closed.
Result<PeerIdentity> peer_identity(int socket, std::uint64_t before_ns);
std::uint64_t boottime_ns();
// The fallback: a pidfd for the pid, if that process started before `before`.
Result<sys::UniqueFd> pidfd_if_started_before(pid_t pid, std::uint64_t before_ns);
// True if no process has the other end of the socket any more: the peer has ended.
bool is_hung_up(int socket);

bool has_ended(int pidfd);

// Values from this machine's /proc; "" or 0 if the process has ended.
std::uint32_t innermost_pid(pid_t pid);  // the pid in its own namespace
std::string command_of(pid_t pid);
std::string cgroup_of(pid_t pid);  // the content of /proc/PID/cgroup
pid_t parent_of(pid_t pid);
bool is_kernel_thread(pid_t pid);

// The first process of the container whose hook is `client`. If the runtime runs hooks outside of
// the container, that is `named`; if it runs them inside, in the container's pid namespace, that is
// the namespace's first process. 0 if neither can be determined.
pid_t container_init_pid(pid_t client, pid_t named);
std::uint64_t start_ticks(pid_t pid);  // in ticks since the machine's boot
// The same on CLOCK_BOOTTIME: not before the first value, and before the second.
struct StartInterval {
  std::uint64_t earliest_ns = 0;
  std::uint64_t latest_ns = 0;
};
StartInterval start_interval(pid_t pid);

}  // namespace gantry::daemon
