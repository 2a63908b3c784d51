// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/process_terminator.hpp"

#include "sharing/daemon/peer_identity.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace gantry::daemon {
namespace {

void send(int pidfd, int signal) {
  ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0);
}

}  // namespace

void ProcessTerminator::stop(pid_t pid, const std::function<bool(pid_t)>& still,
                             Clock::time_point now) {
  if (pid <= 1 || pid == ::getpid() || asked_.count(pid) != 0) return;
  sys::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid() || !still(pid) || has_ended(pidfd.get())) return;
  send(pidfd.get(), SIGTERM);
  asked_[pid] = {std::move(pidfd), now};
}

void ProcessTerminator::on_heartbeat(Clock::time_point now) {
  std::erase_if(asked_, [&](const auto& entry) {
    const auto& asked = entry.second;
    if (has_ended(asked.pidfd.get())) return true;
    if (now - asked.since > timeout_) send(asked.pidfd.get(), SIGKILL);
    return false;
  });
}

}  // namespace gantry::daemon
