// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/container_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::runtime {
namespace {

constexpr std::size_t kCgroupLimit = std::size_t{64} << 10;

Result<std::string> read_all(int fd, std::size_t limit) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const auto got = ::read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "read");
    if (got == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > limit) return Error(Errc::Corrupt, "it is longer than expected");
  }
}

}  // namespace

Result<ContainerProcess> ContainerProcess::open(pid_t pid) {
  const auto path = fmt::format("/proc/{}", pid);
  sys::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    const int err = errno;
    if (err == ENOENT) return Error(Errc::NotFound, fmt::format("there is no process {}", pid));
    return Error::sys(err, fmt::format("open {}", path));
  }
  struct statfs where {};
  if (::fstatfs(fd.get(), &where) != 0 || where.f_type != PROC_SUPER_MAGIC) {
    return Error(Errc::Denied, fmt::format("{} is not in a real procfs", path));
  }
  return ContainerProcess(pid, std::move(fd));
}

bool ContainerProcess::alive() const {
  // After the process has ended, nothing in its directory can be opened, even if its number is in
  // use again.
  return sys::UniqueFd(::openat(directory_.get(), "cgroup", O_RDONLY | O_CLOEXEC)).valid();
}

Result<std::string> ContainerProcess::cgroup() const {
  const sys::UniqueFd fd(::openat(directory_.get(), "cgroup", O_RDONLY | O_CLOEXEC));
  const auto name = fmt::format("/proc/{}/cgroup", pid_);
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", name));
  return read_all(fd.get(), kCgroupLimit).in(name);
}

Result<std::optional<sys::UniqueFd>> ContainerProcess::own_namespace(const char* which) const {
  sys::UniqueFd theirs(::openat(directory_.get(), which, O_RDONLY | O_CLOEXEC));
  if (!theirs.valid()) return Error::sys(errno, fmt::format("open /proc/{}/{}", pid_, which));
  const auto here = fmt::format("/proc/self/{}", which);
  const sys::UniqueFd ours(::open(here.c_str(), O_RDONLY | O_CLOEXEC));
  if (!ours.valid()) return Error::sys(errno, fmt::format("open {}", here));
  struct stat a {};
  struct stat b {};
  if (::fstat(theirs.get(), &a) != 0 || ::fstat(ours.get(), &b) != 0) {
    return Error::sys(errno, "comparing namespaces");
  }
  if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) return std::optional<sys::UniqueFd>();
  return std::optional(std::move(theirs));
}

Status ContainerProcess::enter_mounts() const {
  GANTRY_TRY(const std::optional<sys::UniqueFd> mounts, own_namespace("ns/mnt"));
  if (!mounts) {
    return Error(
        Errc::Denied,
        fmt::format("process {} does not have its own mounts: it is not in a container, and "
                    "mounts for it would be made on the host",
                    pid_));
  }
  if (::setns(mounts->get(), CLONE_NEWNS) != 0) {
    return Error::sys(errno, fmt::format("entering the mounts of process {}", pid_));
  }
  return {};
}

Status ContainerProcess::enter_user() const {
  GANTRY_TRY(const std::optional<sys::UniqueFd> user, own_namespace("ns/user"));
  if (!user) return {};
  const auto doing = fmt::format("entering the user namespace of process {}", pid_);
  if (::setns(user->get(), CLONE_NEWUSER) != 0) return Error::sys(errno, doing);
  // If the namespace forbids setgroups(2), we keep our groups; they give no access here.
  (void)::setgroups(0, nullptr);
  if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) return Error::sys(errno, doing);
  return {};
}

}  // namespace gantry::runtime
