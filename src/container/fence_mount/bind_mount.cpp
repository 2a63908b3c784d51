// SPDX-License-Identifier: Apache-2.0
#include "base/core/result.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/mount_flags.hpp"
#include "container/fence_mount/bind_mount_internal.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace gantry::fence_mount {
namespace {

std::string path_of(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

// In a user namespace, a remount may not remove flags that the mount has.
unsigned long kept_flags(const std::string& place) {
  struct statvfs now {};
  return ::statvfs(place.c_str(), &now) == 0 ? sys::mount_flags(now) : 0;
}

Status put_back(int covered, const std::string& above, const std::string& name) {
  const auto from = fmt::format("{}/{}", path_of(covered), name);
  const auto to = fmt::format("{}/{}", above, name);
  struct stat info {};
  if (::lstat(from.c_str(), &info) != 0) return {};  // removed in the meantime
  if (S_ISLNK(info.st_mode)) {
    std::error_code ignored;
    std::filesystem::copy_symlink(from, to, ignored);
    return {};
  }
  if (S_ISDIR(info.st_mode)) {
    if (::mkdir(to.c_str(), 0755) != 0) return Error::sys(errno, fmt::format("mkdir {}", to));
  } else {
    const sys::UniqueFd made(::open(to.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!made.valid()) return Error::sys(errno, fmt::format("create {}", to));
  }
  if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return Error::sys(errno, fmt::format("bind {}", to));
  return {};
}

Status copy_in_memory(const std::string& above) {
  GANTRY_TRY(const auto covered, open_source(above));
  sys::UniqueFd listing(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listing.valid()) return Error::sys(errno, fmt::format("open {}", above));
  GANTRY_TRY(const auto names, sys::list_directory(std::move(listing), 4096, above));
  if (::mount("gantry", above.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0)
    return Error::sys(errno, fmt::format("mount a tmpfs at {}", above));
  for (const auto& name : names) GANTRY_CHECK(put_back(covered.get(), above, name));
  return {};
}

}  // namespace

Result<sys::UniqueFd> open_source(const std::string& path) {
  sys::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", path));
  return fd;
}

Result<sys::UniqueFd> open_optional(const std::string& path) {
  if (path.empty()) return sys::UniqueFd();
  return open_source(path);
}

Status bind_over(int source, const std::string& place, BindMode kind) {
  if (::mount(path_of(source).c_str(), place.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return Error::sys(errno, fmt::format("mount over {}", place));
  if (kind == BindMode::Writable) return {};
  const unsigned long flags = kind == BindMode::ReadOnly ? MS_RDONLY : MS_NODEV;
  if (::mount(nullptr, place.c_str(), nullptr, MS_REMOUNT | MS_BIND | flags | kept_flags(place),
              nullptr) != 0)
    return Error::sys(errno, fmt::format("mount over {} (options)", place));
  return {};
}

Status make_mount_point(const std::string& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (!problem) return {};
  auto above = std::filesystem::path(directory).parent_path();
  while (!std::filesystem::is_directory(above, problem)) above = above.parent_path();
  if (above == "/")
    return Error(Errc::NotFound, fmt::format("there is no {} to mount on", directory));
  GANTRY_CHECK(copy_in_memory(above.string()));
  std::filesystem::create_directories(directory, problem);
  if (problem) return Error::sys(problem.value(), fmt::format("mkdir {}", directory));
  return {};
}

}  // namespace gantry::fence_mount
