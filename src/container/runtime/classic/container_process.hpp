// SPDX-License-Identifier: Apache-2.0
// The first process of a container that is being started, held so that its number cannot come to
// mean another: a descriptor of /proc/PID belongs to the process, not to the number.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <optional>
#include <string>

namespace gantry::runtime {

class ContainerProcess {
 public:
  // NotFound when there is no such process; Denied when /proc is not the kernel's.
  static Result<ContainerProcess> open(pid_t pid);

  pid_t pid() const { return pid_; }
  bool alive() const;

  // Its /proc/PID/cgroup, as this process sees it.
  Result<std::string> cgroup() const;

  // From here on this process sees the container's mounts, its own among them: before the runtime
  // has changed the root, that is the host's whole tree with the container's below its root
  // directory. Denied when the process shares the mounts of this one, for then it is no container,
  // and a mount would be one on the host. Only while there is one thread.
  Status enter_mounts() const;

  // Becomes root of the container's user namespace, where it has one of its own: files are then
  // made as the container's, and nothing can be done that its root could not do. Nothing happens
  // otherwise.
  Status enter_user() const;

 private:
  Result<std::optional<sys::UniqueFd>> own_namespace(const char* which) const;
  ContainerProcess(pid_t pid, sys::UniqueFd directory)
      : pid_(pid), directory_(std::move(directory)) {}
  pid_t pid_;
  sys::UniqueFd directory_;  // /proc/PID
};

}  // namespace gantry::runtime
