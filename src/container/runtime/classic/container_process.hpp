// SPDX-License-Identifier: Apache-2.0
// The first process of a container that is starting. Holds a descriptor of /proc/PID, which belongs
// to the process and not to its number, so that a reused number cannot mean another process.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <optional>
#include <string>

namespace gantry::runtime {

class ContainerProcess {
 public:
  // NotFound if there is no such process; Denied if /proc is not a real procfs.
  static Result<ContainerProcess> open(pid_t pid);

  pid_t pid() const { return pid_; }
  bool alive() const;

  // The content of its /proc/PID/cgroup, as this process sees it.
  Result<std::string> cgroup() const;

  // Moves this process into the container's mount namespace. Before the runtime has changed the
  // root, that is the host's whole tree with the container's mounts below its root directory.
  // Denied if the process is in our own mount namespace: then it is not a container, and mounts
  // would be made on the host. Call it only while there is one thread.
  Status enter_mounts() const;

  // Becomes root of the container's user namespace, if it has one: then new files belong to the
  // container, and this process has no more rights than the container's root. Does nothing
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
