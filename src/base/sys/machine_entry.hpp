// SPDX-License-Identifier: Apache-2.0
// How a child process of a pod, which has the machine below /host, runs a program of the machine as
// if it had been started there.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"

#include <string>

namespace gantry::sys {

// With chroot alone, a program can see that it is in one, and systemctl then ignores "stop" and
// "start" with success. So the mount namespace of the machine's first process is entered if that is
// allowed (CAP_SYS_ADMIN); else the root is changed, and systemctl is told not to mind.
class MachineEntry {
 public:
  // For a host that is this machine (Kernel::is_this_machine).
  static MachineEntry of(const Host& host);

  // In the child, before exec; makes system calls only. False with errno if neither is allowed.
  bool enter() const;
  // For the environment of the program.
  static constexpr const char* kIgnoreChroot = "SYSTEMD_IGNORE_CHROOT=1";

 private:
  UniqueFd mounts_;  // of the first process; invalid if it has another root than the host
  std::string root_;
};

}  // namespace gantry::sys
