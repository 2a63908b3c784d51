// SPDX-License-Identifier: Apache-2.0
// The kubelet's plugin directory: what is in it, who replaced it, and a wake-up when that changes.
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

// A file that is still the same file. With its time of change: inode numbers come back at once.
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

  // Watches whatever directory is at the path now. False when there is none. Cheap when nothing
  // changed, so it may be called often: where inotify says nothing (another directory was put in
  // this place, a queue overflowed), only looking helps.
  bool rewatch();

 private:
  void drain();
  sys::Loop& loop_;
  std::string path_;
  std::function<void()> on_change_;
  sys::UniqueFd inotify_;
  sys::Loop::Watch watch_;
  std::optional<std::pair<dev_t, ino_t>> watched_;
};

// Sockets of ours at which nobody listens any more.
void remove_stale_sockets(const std::string& directory);

// "gantry-gpu-4711-18c2f3a0.sock"; `number` makes it unique within this process.
std::string socket_name(std::string_view resource, std::uint64_t number);
std::string gke_socket_name(std::int64_t unix_seconds);  // "nvidiaGPU-1615441867.sock"

}  // namespace gantry::kubelet
