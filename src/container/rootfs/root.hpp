// SPDX-License-Identifier: Apache-2.0
// A container's root file system. It is untrusted: a stranger made it, and another container may
// change it while we read. All access uses descriptors below the root; a name is resolved once,
// inside the root, and never again as a string. Nothing in it is ever executed, truncated or used
// as the source of a mount.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::rootfs {

class Root {
 public:
  // `path` comes from the engine (root.path of config.json), not from the image.
  static Result<Root> at(std::string_view path);

  const std::string& name() const { return name_; }  // for messages, not for opening
  int fd() const { return fd_.get(); }

  // Always O_CLOEXEC. Symlinks are followed inside the root.
  Result<sys::UniqueFd> open(std::string_view path, int flags) const;

  // The type and owner of a file; `info` follows symlinks, `info_of_link` does not.
  Result<sys::FileInfo> info(std::string_view path) const;
  Result<sys::FileInfo> link_info(std::string_view path) const;
  Result<std::string> link(std::string_view path) const;

  // Resolves symlinks inside the root: "/etc/ld.so.cache" -> "/data/ld.so.cache" if the image has a
  // link /etc -> /data, even if /data does not exist yet (follow_links()).
  Result<std::string> real_path(std::string_view path) const;

  // A regular file of at most `limit` bytes. Invalid for a FIFO, a device, a directory; Corrupt for
  // a larger one.
  Result<std::string> read(std::string_view path, std::size_t limit) const;

  // Names in a directory, sorted; at most `limit`, more is Corrupt.
  Result<std::vector<std::string>> list(std::string_view path, std::size_t limit = 4096) const;

  // The following functions change only the root's own file system, and memory that the runtime has
  // mounted in it (/dev, /run). On another mount, such as a volume, the change would be made on the
  // host, and a symlink of the image (/etc -> /data) would choose the path. Such a call fails with
  // sys_errno() EXDEV and changes nothing.

  // Opens the directory; creates it and its parents if missing (0755, owner of the parent).
  Result<sys::UniqueFd> make_directories(std::string_view path) const;

  // Writes a temporary file in the same directory and renames it. Keeps owner and mode of the
  // regular file that it replaces; a new file has `mode` and the owner of its directory. A symlink,
  // FIFO or device is replaced, never written through. Exists if the path is a directory, Denied if
  // it cannot be written (sys_errno() EROFS: a read-only file system).
  Status put_file(std::string_view path, std::string_view content, std::uint32_t mode = 0644) const;

  // Does nothing if the same link already exists.
  Status put_symlink(std::string_view path, std::string_view target) const;

  Status remove(std::string_view path) const;  // one file or symlink; no error if it is missing

  Status set_mode(std::string_view path, std::uint32_t mode) const;  // symlinks are followed

 private:
  Root(std::string name, sys::UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}
  std::string shown(std::string_view path) const;
  Status may_change(int fd, std::string_view path) const;
  Status make_directory(std::string_view path) const;

  std::string name_;
  sys::UniqueFd fd_;
};

// Returns true if the root is "/" itself, because of a wrong configuration.
bool is_host_root(const Root& root);

// "/etc/ld.so.cache" -> "/etc", "ld.so.cache". Invalid if the last part is not an entry's name.
struct SplitPath {
  std::string_view parent;
  std::string_view name;
};
Result<SplitPath> split_path(std::string_view path);

}  // namespace gantry::rootfs
