// SPDX-License-Identifier: Apache-2.0
// The kubelet's plugin directory: its contents, its replacement, and a wake-up when it changes.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::kubelet {

inline constexpr std::string_view kKubeletSocket = "kubelet.sock";
inline constexpr std::string_view kGantryPrefix = "gantry-";
inline constexpr std::string_view kGkePrefix = "nvidiaGPU-";

// Identifies a file. Includes the time of change, because inode numbers are reused at once.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const FileId&) const = default;
};

std::optional<FileId> file_id(const std::string& path);

class DirectoryWatch {
 public:
  DirectoryWatch(sys::Loop& loop, std::string path, std::function<void()> on_change)
      : loop_(loop), path_(std::move(path)), on_change_(std::move(on_change)) {}

  // Watches the directory that is at the path now; returns false if there is none. Cheap if nothing
  // changed, so call it often: inotify does not report that another directory was put in this place
  // or that a queue overflowed.
  bool rewatch();

  // Returns true if changes of the directory are reported.
  bool is_watching() const { return watching_; }

 private:
  void drain();
  sys::Loop& loop_;
  std::string path_;
  std::function<void()> on_change_;
  sys::UniqueFd inotify_;
  sys::Loop::Watch watch_;
  bool watching_ = false;
  std::optional<std::pair<dev_t, ino_t>> watched_;
};

// Removes our sockets at which no process listens.
void remove_stale_sockets(const std::string& directory);

// "gantry-gpu-4711-18c2f3a0.sock"; `number` makes it unique within this process.
std::string socket_name(std::string_view resource, std::uint64_t number);
std::string gke_socket_name(std::int64_t unix_seconds);  // "nvidiaGPU-1615441867.sock"

}  // namespace gantry::kubelet
