// SPDX-License-Identifier: Apache-2.0
// The machine below a root: "/" in production, "/host" in a pod, a tree in tests. Paths are
// absolute inside the root and are resolved there: a symlink, absolute or with "..", cannot leave
// it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sys {

class Host {
 public:
  // Returns NotFound or Invalid if root is not a directory.
  static Result<Host> at(std::string_view root);

  const std::string& root() const { return root_; }
  bool is_live() const { return root_ == "/"; }

  // The path as a process outside the root sees it, for dlopen and messages. Do not open files with
  // it.
  std::string outside(std::string_view path) const;

  // Always O_CLOEXEC. Follows symlinks inside the root.
  Result<UniqueFd> open(std::string_view path, int flags) const;

  // Reads the whole file. Returns Corrupt if it has more than `limit` bytes; it never truncates.
  Result<std::string> read(std::string_view path, std::size_t limit = kReadLimit) const;

  // A one-value /proc or /sys file, trimmed. nullopt when it cannot be read.
  std::optional<std::string> read_value(std::string_view path) const;

  // Names in a directory, sorted, without "." and "..".
  Result<std::vector<std::string>> list(std::string_view path) const;

  bool exists(std::string_view path) const;                  // follows symlinks
  Result<std::string> link(std::string_view path) const;     // readlink, one step
  Result<std::string> resolve(std::string_view path) const;  // all symlinks, path inside the root
  Result<FileInfo> info(std::string_view path) const;        // follows symlinks
  Result<FileInfo> link_info(std::string_view path) const;

  // A device node's type, numbers, mode and owner. If the tree has a `dev.table` at its root (a
  // fixture made without mknod), the answer comes from there: "/dev/nvidia0 c 195 0 0666 0 0" =
  // path type major minor mode uid gid, one a line.
  Result<FileInfo> device(std::string_view path) const;

  // Device nodes directly in a directory such as "/dev", from the tree and the dev.table.
  std::vector<std::string> device_paths(std::string_view directory) const;

  static constexpr std::size_t kReadLimit = std::size_t{8} << 20;

 private:
  struct TableNode {
    std::string path;
    FileInfo info;
  };
  Host(std::string root, UniqueFd fd) : root_(std::move(root)), fd_(std::move(fd)) {}
  void read_device_table();

  std::string root_;
  UniqueFd fd_;
  std::vector<TableNode> table_;
};

}  // namespace gantry::sys
