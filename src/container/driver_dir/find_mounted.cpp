// SPDX-License-Identifier: Apache-2.0
// Finds the processes that have a driver directory mounted, from the mountinfo of every process.
#include "base/core/text.hpp"
#include "container/driver_dir/find_mounted_internal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

namespace gantry::driver_dir {
namespace {

constexpr std::size_t kMaxHostProcesses = 65536;
constexpr std::size_t kMaxMountinfoBytes = std::size_t{16} << 20;  // bytes of one mountinfo

// Reads the pid namespace of the first process: in a container's procfs that is the container's. If
// we may not read the first process, reads our own link: a procfs shows us only if it belongs to
// our namespace or a parent of it, so the result is the same.
bool shows_all_processes(const std::string& processes, std::uint64_t initial) {
  for (const auto* process : {"1", "self"}) {
    struct stat space {};
    const auto link = fmt::format("{}/{}/ns/pid", processes, process);
    if (::stat(link.c_str(), &space) == 0) return space.st_ino == initial;
  }
  return false;
}

// The whole file, or nothing if the process has ended.
Result<std::string> read_mounts(int processes, const std::string& pid) {
  const auto path = pid + "/mountinfo";
  const sys::UniqueFd fd(::openat(processes, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    // EINVAL: a zombie; it has no mounts any more.
    if (errno == ENOENT || errno == ESRCH || errno == EINVAL) return std::string();
    return Error::sys(errno, fmt::format("read /proc/{}", path));
  }
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    // EINVAL: the process ended; it has no mounts any more.
    if (got < 0 && (errno == EINVAL || errno == ESRCH)) return std::string();
    if (got < 0) return Error::sys(errno, fmt::format("read /proc/{}", path));
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMaxMountinfoBytes)
      return Error(Errc::Corrupt, fmt::format("/proc/{} is too large", path));
  }
}

// The names that occur in a mount's source: "... /var/lib/gantry/driver/550.90.07-.../sets ...".
void mark_used(std::string_view mounts, const std::vector<std::string>& names,
               std::set<std::string>& used) {
  for (const auto& name : names) {
    if (!used.contains(name) && contains(mounts, "/" + name + "/")) used.insert(name);
    if (!used.contains(name) && contains(mounts, "/" + name + " ")) used.insert(name);
  }
}

}  // namespace

Result<std::string> find_host_procfs(const sys::Host& host, const GarbageOptions& options) {
  if (shows_all_processes(options.processes, options.initial_pid_namespace))
    return options.processes;
  auto of_root = host.outside("/proc");
  if (shows_all_processes(of_root, options.initial_pid_namespace)) return of_root;
  return Error(Errc::Unsupported,
               fmt::format("old driver directories are kept: {} shows only the processes of one "
                           "container, and other processes may have such a directory mounted; run "
                           "`gantry cdi refresh` on the machine itself, or in a pod with hostPID",
                           options.processes));
}

Result<std::set<std::string>> find_mounted(const std::vector<std::string>& names,
                                           const std::string& processes) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(processes.c_str()), ::closedir);
  if (!entries) return Error::sys(errno, fmt::format("list {}", processes));
  std::set<std::string> used;
  std::set<std::pair<dev_t, ino_t>> seen;  // reads each mount namespace once
  std::size_t count = 0;
  bool first_seen = false;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string pid(entry->d_name);
    if (!parse_u64(pid)) continue;
    first_seen = first_seen || pid == "1";
    if (++count > kMaxHostProcesses) {
      return Error(Errc::Corrupt, fmt::format("more than {} processes", kMaxHostProcesses));
    }
    struct stat space {};
    const auto link = pid + "/ns/mnt";
    if (::fstatat(::dirfd(entries.get()), link.c_str(), &space, 0) == 0 &&
        !seen.emplace(space.st_dev, space.st_ino).second) {
      continue;
    }
    GANTRY_TRY(const auto mounts, read_mounts(::dirfd(entries.get()), pid));
    mark_used(mounts, names, used);
  }
  if (!first_seen) {
    return Error(Errc::Denied, fmt::format("old driver directories are kept: {} hides other users' "
                                           "processes (hidepid); run `gantry cdi refresh` as root",
                                           processes));
  }
  return used;
}

}  // namespace gantry::driver_dir
