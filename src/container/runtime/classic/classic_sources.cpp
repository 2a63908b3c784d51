// SPDX-License-Identifier: Apache-2.0
// The part of classic_injection.hpp that reads the host.
#include "container/runtime/classic/classic_injection.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::runtime {
namespace {

constexpr uid_t kOverflowUser = 65534;  // a user namespace shows this for all users outside

Result<struct stat> look(const std::string& path) {
  const sys::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0) {
    const int err = errno;
    auto error = Error::sys(err, fmt::format("open {}", path));
    if (err != ENOENT) return error;
    return std::move(error).advise("run `gantry cdi refresh`");
  }
  return st;
}

// A file that other users can change must not get into a container as part of the driver.
Status check_root_owned(const struct stat& st, const std::string& path) {
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return {};  // every user may use sockets
  const bool rooted = st.st_uid == 0 || st.st_uid == ::geteuid() || st.st_uid == kOverflowUser;
  if (rooted && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return Error(Errc::Denied, fmt::format("{} belongs to user {} and has mode {:04o}: users other "
                                         "than root could change it, so it is not mounted",
                                         path, st.st_uid, st.st_mode & 07777));
}

bool has(const std::vector<std::string>& options, std::string_view word) {
  return std::find(options.begin(), options.end(), word) != options.end();
}

SourceBind bind_of(const struct stat& st, std::string source, std::string target,
                   const rootfs::BindOptions& options) {
  return {.source = std::move(source),
          .target = std::move(target),
          .options = options,
          .device = st.st_dev,
          .inode = st.st_ino};
}

// Read-only, because the inode belongs to the host: a chmod in the container would change the host.
constexpr rootfs::BindOptions kNode{.read_only = true, .no_exec = true, .devices = true};

}  // namespace

Result<std::vector<SourceBind>> check_mount_sources(const std::vector<model::MountEdit>& mounts) {
  std::vector<SourceBind> binds;
  for (const auto& mount : mounts) {
    GANTRY_TRY(const struct stat st, look(mount.host_path));
    GANTRY_CHECK(check_root_owned(st, mount.host_path));
    binds.push_back(
        bind_of(st, mount.host_path, mount.container_path,
                {.read_only = has(mount.options, "ro"), .no_exec = has(mount.options, "noexec")}));
  }
  return binds;
}

Result<ClassicInjection> check_sources(const model::ContainerEdits& edits, NodeBinds nodes) {
  ClassicInjection work;
  GANTRY_TRY(work.binds, check_mount_sources(edits.mounts));
  for (const auto& node : edits.nodes) {
    GANTRY_TRY(const struct stat st, look(node.host_path));
    if (!S_ISCHR(st.st_mode)) {
      return Error(Errc::Invalid, fmt::format("{} is not a character device", node.host_path))
          .advise("run `gantry doctor`");
    }
    work.rules.push_back({.major = major(st.st_rdev), .minor = minor(st.st_rdev)});
    if (nodes == NodeBinds::Make) {
      work.binds.push_back(bind_of(st, node.host_path, node.path, kNode));
    }
  }
  std::sort(work.rules.begin(), work.rules.end());
  work.rules.erase(std::unique(work.rules.begin(), work.rules.end()), work.rules.end());
  work.libraries = edits.libraries;
  work.files = edits.files;
  return work;
}

}  // namespace gantry::runtime
