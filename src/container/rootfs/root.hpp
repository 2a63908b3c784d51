// SPDX-License-Identifier: Apache-2.0
// A container's root file system as what it is: a tree that a stranger made, perhaps with another
// container of theirs changing it while we look. Everything goes through descriptors below the
// root; a name is resolved once, inside, and never again by string. Nothing in it is ever executed,
// truncated or used as the source of a mount.
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

  // What is there; symlinks followed (`info`) or not (`info_of_link`).
  Result<sys::FileInfo> info(std::string_view path) const;
  Result<sys::FileInfo> link_info(std::string_view path) const;
  Result<std::string> link(std::string_view path) const;

  // Where a path leads by now, in the root's own words: "/etc/ld.so.cache" -> "/data/ld.so.cache"
  // when the image says /etc -> /data. Parts that are not there are kept as they are.
  Result<std::string> real_path(std::string_view path) const;

  // A regular file of at most `limit` bytes. Invalid for a FIFO, a device, a directory; Corrupt for
  // a larger one.
  Result<std::string> read(std::string_view path, std::size_t limit) const;

  // Names in a directory, sorted; at most `limit`, more is Corrupt.
  Result<std::vector<std::string>> list(std::string_view path, std::size_t limit = 4096) const;

  // What follows changes the root's own file system, and memory that its runtime has mounted in it
  // (/dev, /run). On any other mount, a volume say, the change would be one of the host, and an
  // image's symlink (/etc -> /data) would choose the place: sys_errno() is EXDEV then, and nothing
  // has changed.

  // The directory, made with its parents (0755, owned as the directory above) where missing.
  Result<sys::UniqueFd> make_directories(std::string_view path) const;

  // Written beside its place and renamed there. Owner and mode are those of the regular file that
  // it replaces; a new one has `mode` and the owner of its directory. A symlink, FIFO or device in
  // its place is replaced, never written through. Exists when a directory is there, Denied where
  // nothing can be written (sys_errno() EROFS: a read-only file system).
  Status put_file(std::string_view path, std::string_view content, std::uint32_t mode = 0644) const;

  // Nothing happens when the very link is there.
  Status put_symlink(std::string_view path, std::string_view target) const;

  Status remove(std::string_view path) const;  // one file or symlink; none there is fine

  Status set_mode(std::string_view path, std::uint32_t mode) const;  // symlinks are followed

 private:
  Root(std::string name, sys::UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}
  std::string shown(std::string_view path) const;
  Status may_change(int fd, std::string_view path) const;
  Status make_directory(std::string_view path) const;

  std::string name_;
  sys::UniqueFd fd_;
};

// Whether a configuration led us to "/" itself, whose files are nobody's container's.
bool is_host_root(const Root& root);

// "/etc/ld.so.cache" -> "/etc", "ld.so.cache". Invalid when the last part names no entry.
struct SplitPath {
  std::string_view parent;
  std::string_view name;
};
Result<SplitPath> split_path(std::string_view path);

}  // namespace gantry::rootfs
