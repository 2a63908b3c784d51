// SPDX-License-Identifier: Apache-2.0
#include "runtime/container_process.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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
    return Error(Errc::Denied, fmt::format("{} is not the kernel's", path));
  }
  return ContainerProcess(pid, std::move(fd));
}

bool ContainerProcess::alive() const {
  // A directory of a process that is gone opens nothing more, whoever has its number by then.
  return sys::UniqueFd(::openat(directory_.get(), "cgroup", O_RDONLY | O_CLOEXEC)).valid();
}

Result<std::string> ContainerProcess::cgroup() const {
  const sys::UniqueFd fd(::openat(directory_.get(), "cgroup", O_RDONLY | O_CLOEXEC));
  const auto name = fmt::format("/proc/{}/cgroup", pid_);
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", name));
  return read_all(fd.get(), kCgroupLimit).in(name);
}

Status ContainerProcess::enter_mounts() const {
  const sys::UniqueFd theirs(::openat(directory_.get(), "ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!theirs.valid()) return Error::sys(errno, fmt::format("open /proc/{}/ns/mnt", pid_));
  const sys::UniqueFd ours(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!ours.valid()) return Error::sys(errno, "open /proc/self/ns/mnt");
  struct stat a {};
  struct stat b {};
  if (::fstat(theirs.get(), &a) != 0 || ::fstat(ours.get(), &b) != 0) {
    return Error::sys(errno, "comparing mount namespaces");
  }
  if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
    return Error(Errc::Denied,
                 fmt::format("process {} has no mounts of its own: it is not in a container, and "
                             "what is mounted for it would be mounted on the host",
                             pid_));
  }
  if (::setns(theirs.get(), CLONE_NEWNS) != 0) {
    return Error::sys(errno, fmt::format("entering the mounts of process {}", pid_));
  }
  return {};
}

}  // namespace gantry::runtime
