// SPDX-License-Identifier: Apache-2.0
// A cgroup for the processes that `gantry share run` starts. Their descendants stay in it, even if
// they change parent or session. It is created below their current cgroup, so that all limits of
// that cgroup still apply. Without cgroup v2, descendants are found by their parents.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace gantry::daemon {

class ShareCgroup {
 public:
  ShareCgroup() = default;
  // Moves the process into the cgroup. Empty if that is not possible on this machine.
  static ShareCgroup create_around(pid_t pid, std::string_view share);
  ShareCgroup(ShareCgroup&& other) noexcept;
  ShareCgroup& operator=(ShareCgroup&& other) noexcept;
  ~ShareCgroup() { (void)remove(); }

  // False while the cgroup has processes; a process that has just ended stays in it for a moment.
  bool remove();

  const std::string& directory() const { return directory_; }  // "" if there is none

  // `cgroup`: /proc/PID/cgroup.
  bool has(std::string_view cgroup) const;

 private:
  ShareCgroup(std::string directory, std::string path)
      : directory_(std::move(directory)), path_(std::move(path)) {}
  std::string directory_;  // in the file system
  std::string path_;       // in the hierarchy: "/user.slice/x.scope/gantry-share-train"
};

// Removes the cgroup that an earlier daemon made for this share, if it is empty.
void remove_left_cgroup(const std::string& directory, std::string_view share);

}  // namespace gantry::daemon
