// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/mount.hpp"

#include "base/core/text.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/mount_flags.hpp"
#include "base/sys/open_in_root.hpp"
#include "container/rootfs/mount_table.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::rootfs {

using sys::UniqueFd;

namespace {

// System calls by number: then only the kernel or a seccomp profile can refuse them, not an old
// libc.
UniqueFd open_tree_of(int fd) {
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_open_tree, fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)));
}

bool is_missing(const Error& error) {
  return error.sys_errno() == ENOSYS || error.sys_errno() == EPERM;
}

unsigned long classic_flags(const BindOptions& options) {
  unsigned long flags = MS_NOSUID;
  if (options.read_only) flags |= MS_RDONLY;
  if (options.no_exec) flags |= MS_NOEXEC;
  if (!options.devices) flags |= MS_NODEV;
  return flags;
}

// A remount must repeat flags that a user namespace may not remove.
unsigned long locked_flags(int fd) {
  struct statvfs now {};
  return ::fstatvfs(fd, &now) == 0 ? sys::mount_flags(now) : 0;
}

Status classic_mount(const char* source, int target, const char* type, unsigned long flags,
                     const char* data, std::string_view what) {
  GANTRY_TRY(const std::string to, sys::descriptor_path(target));
  if (::mount(source, to.c_str(), type, flags, data) != 0) return Error::sys(errno, what);
  return {};
}

// Replaces open_tree and move_mount on old kernels. The options need a second call, which finds the
// new mount by its path; comparing the file shows that it is our mount.
Status bind_classic(const Root& root, int source, int target, std::string_view path,
                    const BindOptions& options) {
  GANTRY_TRY(const std::string from, sys::descriptor_path(source));
  GANTRY_CHECK(classic_mount(from.c_str(), target, nullptr, MS_BIND, nullptr, "mount"));
  GANTRY_TRY(const UniqueFd mounted, root.open(path, O_PATH));
  if (!sys::same_file(source, mounted.get())) {
    return Error(Errc::Busy, fmt::format("{} was replaced while it was being mounted over", path));
  }
  GANTRY_CHECK(
      classic_mount(nullptr, mounted.get(), nullptr, MS_PRIVATE, nullptr, "mount (private)"));
  return classic_mount(nullptr, mounted.get(), nullptr,
                       MS_REMOUNT | MS_BIND | classic_flags(options) | locked_flags(mounted.get()),
                       nullptr, "mount (options)");
}

Status not_on_avoided(int target, std::string_view path, const BindOptions& options) {
  if (options.avoid == nullptr || options.avoid->empty()) return {};
  GANTRY_TRY(const std::uint64_t mount, sys::mount_id(target));
  if (std::find(options.avoid->begin(), options.avoid->end(), mount) == options.avoid->end()) {
    return {};
  }
  return Error(Errc::Denied,
               fmt::format("{} is on a mount with shared propagation: a mount there could appear "
                           "outside of the container",
                           path));
}

Status bind_to(const Root& root, int source, int target, std::string_view path,
               const BindOptions& options) {
  GANTRY_CHECK(not_on_avoided(target, path, options));
  auto detached = detached_copy(source, options);
  if (detached.ok()) {
    auto attached = attach(detached->get(), target);
    if (attached.ok() || !is_missing(attached.error())) return attached;
  } else if (!is_missing(detached.error())) {
    return std::move(detached).error();
  }
  return bind_classic(root, source, target, path, options);
}

// Checks the existing part of the path before anything is created.
Status may_lead_to(const Root& root, std::string_view path, const BindOptions& options) {
  for (auto there = path;;) {
    const auto fd = root.open(there, O_PATH);
    if (fd.ok()) return not_on_avoided(fd->get(), path, options);
    if (fd.error().sys_errno() != ENOENT || there == "/") return fd.error();
    there = parent_directory(there);
  }
}

// The target must have the same type as the source.
Result<UniqueFd> mount_point(const Root& root, int source, std::string_view path,
                             const BindOptions& options) {
  GANTRY_CHECK(may_lead_to(root, path, options));
  GANTRY_TRY(const sys::FileInfo what, sys::file_info(source, "the mount's source"));
  const bool directory = what.kind == sys::FileKind::Directory;
  if (directory) return root.make_directories(path);
  auto there = root.open(path, O_PATH);
  if (!there.ok() && there.error().sys_errno() == ENOENT) {
    GANTRY_CHECK(root.put_file(path, "", 0444));
    there = root.open(path, O_PATH);
  }
  if (!there.ok()) return there;
  GANTRY_TRY(const sys::FileInfo found, sys::file_info(there->get(), path));
  if (found.kind == sys::FileKind::Directory) {
    return Error(Errc::Exists,
                 fmt::format("{} is a directory, so a file cannot be mounted there", path));
  }
  return there;
}

// A directory for a temporary file system: exists in every container and is not above the target.
Result<UniqueFd> scratch(const Root& root, std::string_view& path) {
  for (const std::string_view candidate : {"/run", "/dev", "/tmp"}) {
    auto fd = root.open(candidate, O_PATH | O_DIRECTORY);
    if (!fd.ok()) continue;
    path = candidate;
    return fd;
  }
  return Error(Errc::NotFound, "the container root has no /run, /dev or /tmp");
}

}  // namespace

Result<UniqueFd> detached_copy(int source, const BindOptions& options) {
  UniqueFd tree = open_tree_of(source);
  if (!tree.valid()) return Error::sys(errno, "open_tree");
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID;
  if (options.read_only) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  if (options.no_exec) attributes.attr_set |= MOUNT_ATTR_NOEXEC;
  if (!options.devices) attributes.attr_set |= MOUNT_ATTR_NODEV;
  attributes.propagation = MS_PRIVATE;
  if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) !=
      0) {
    return Error::sys(errno, "mount_setattr");
  }
  return tree;
}

Status attach(int detached, int target) {
  constexpr unsigned kFlags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
  if (::syscall(SYS_move_mount, detached, "", target, "", kFlags) != 0) {
    return Error::sys(errno, "move_mount");
  }
  return {};
}

Status bind(const Root& root, int source, std::string_view path, const BindOptions& options) {
  const auto doing = fmt::format("mounting at {} in the container root {}", path, root.name());
  auto target = mount_point(root, source, path, options);
  if (!target.ok()) return std::move(target).error().in(doing);
  return bind_to(root, source, target->get(), path, options).in(doing);
}

Status bind_content(const Root& root, std::string_view content, std::string_view path) {
  GANTRY_TRY(const UniqueFd target, root.open(path, O_PATH));
  std::string_view place;
  GANTRY_TRY(const UniqueFd under, scratch(root, place));
  GANTRY_TRY(const auto shared, shared_mounts());
  const BindOptions options{.no_exec = true, .avoid = &shared};
  GANTRY_CHECK(not_on_avoided(under.get(), place, options));
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  GANTRY_CHECK(
      classic_mount("gantry", under.get(), "tmpfs", kFlags, "size=64m,mode=0755", "mount tmpfs"));
  GANTRY_TRY(const UniqueFd memory, root.open(place, O_PATH | O_DIRECTORY));
  const auto fill = [&]() -> Result<UniqueFd> {
    struct statfs where {};
    if (::fstatfs(memory.get(), &where) != 0 || where.f_type != TMPFS_MAGIC) {
      return Error(Errc::Busy, fmt::format("{} was replaced while it was in use", place));
    }
    constexpr int kCreate = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd file(::openat(memory.get(), "content", kCreate, 0444));
    if (!file.valid()) return Error::sys(errno, fmt::format("write {}", path));
    GANTRY_CHECK(sys::write_all(file.get(), content, path));
    return file;
  };
  auto file = fill();
  auto status = file.ok() ? bind_to(root, file->get(), target.get(), path, options)
                          : Status(std::move(file).error());
  // The bind keeps the file alive; the temporary mount is always removed.
  GANTRY_TRY(const std::string mounted, sys::descriptor_path(memory.get()));
  if (::umount2(mounted.c_str(), MNT_DETACH) != 0 && status.ok())
    status = Error::sys(errno, "umount");
  return std::move(status).in(fmt::format("mounting a generated file at {}", path));
}

}  // namespace gantry::rootfs
