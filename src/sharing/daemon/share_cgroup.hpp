// SPDX-License-Identifier: Apache-2.0
// A cgroup for the processes that `gantry share run` starts: whoever descends from them stays in
// it, whatever it does with its parents and sessions. Created below the cgroup that they are in, so
// that every limit of that one still holds. Where there is no cgroup v2, parents must do.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace gantry::daemon {

class ShareCgroup {
 public:
  ShareCgroup() = default;
  // Moves the process there. Empty where that is not possible here.
  static ShareCgroup create_around(pid_t pid, std::string_view share);
  ShareCgroup(ShareCgroup&& other) noexcept;
  ShareCgroup& operator=(ShareCgroup&& other) noexcept;
  ~ShareCgroup() { (void)remove(); }

  // False while somebody is in it: a process that has just ended still is for a moment.
  bool remove();

  // `cgroup`: /proc/PID/cgroup.
  bool has(std::string_view cgroup) const;

 private:
  ShareCgroup(std::string directory, std::string path)
      : directory_(std::move(directory)), path_(std::move(path)) {}
  std::string directory_;  // in the file system
  std::string path_;       // in the hierarchy: "/user.slice/x.scope/gantry-share-train"
};

}  // namespace gantry::daemon
