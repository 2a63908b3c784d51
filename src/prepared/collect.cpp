// SPDX-License-Identifier: Apache-2.0
#include "prepared/collect.hpp"

#include "base/text.hpp"
#include "plan/places.hpp"
#include "prepared/current.hpp"
#include "prepared/directory_lock_internal.hpp"
#include "prepared/layout_internal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <set>

namespace gantry::prepared {
namespace {

constexpr std::size_t kMostProcesses = 65536;
constexpr std::size_t kMostMounts = std::size_t{16} << 20;  // bytes of one mountinfo

// The whole file, or nothing where the process is gone.
Result<std::string> read_mounts(int processes, const std::string& pid) {
  const auto path = pid + "/mountinfo";
  const sys::UniqueFd fd(::openat(processes, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ESRCH) return std::string();
    return Error::sys(errno, fmt::format("read /proc/{}", path));
  }
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    // EINVAL: the process died; its mounts are nobody's.
    if (got < 0 && (errno == EINVAL || errno == ESRCH)) return std::string();
    if (got < 0) return Error::sys(errno, fmt::format("read /proc/{}", path));
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostMounts)
      return Error(Errc::Corrupt, fmt::format("/proc/{} has no end", path));
  }
}

// Which of the names are in a mount's source: "... /var/lib/gantry/driver/550.90.07-.../sets ...".
void mark_used(std::string_view mounts, const std::vector<std::string>& names,
               std::set<std::string>& used) {
  for (const auto& name : names) {
    if (!used.contains(name) && contains(mounts, "/" + name + "/")) used.insert(name);
    if (!used.contains(name) && contains(mounts, "/" + name + " ")) used.insert(name);
  }
}

Result<std::set<std::string>> used_of(const std::vector<std::string>& names,
                                      const std::string& processes) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(processes.c_str()), ::closedir);
  if (!entries) return Error::sys(errno, fmt::format("list {}", processes));
  std::set<std::string> used;
  std::set<std::pair<dev_t, ino_t>> seen;  // one look for each mount namespace
  std::size_t count = 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string pid(entry->d_name);
    if (!parse_u64(pid)) continue;
    if (++count > kMostProcesses) {
      return Error(Errc::Corrupt, fmt::format("more than {} processes", kMostProcesses));
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
  return used;
}

bool is_young(int directory, const std::string& name, std::chrono::seconds youngest) {
  struct stat status {};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return true;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  // The change of status: it is renamed when it is finished, touched when it is left.
  return now.tv_sec - status.st_ctim.tv_sec < youngest.count();
}

}  // namespace

Result<Collected> collect(const sys::Host& host, const CollectOptions& options) {
  Collected done;
  const auto names = host.list(plan::kPreparedDirectory);
  if (!names.ok()) return done;
  GANTRY_TRY(const auto now, current(host));
  std::vector<std::string> old;
  for (const auto& name : *names) {
    if (!version_in_name(name).empty() && name != now.name) old.push_back(name);
  }
  if (old.empty()) return done;

  GANTRY_TRY(const auto lock, DirectoryLock::take(host, std::chrono::milliseconds(1000)));
  GANTRY_TRY(const auto still, current(host));
  std::erase_if(old, [&](const std::string& name) {
    return name == still.name || is_young(lock.directory(), name, options.youngest);
  });
  if (old.empty()) return done;
  GANTRY_TRY(const auto used, used_of(old, options.processes));
  for (const auto& name : old) {
    if (used.contains(name)) {
      done.in_use.push_back(name);
      continue;
    }
    // Out of sight first: a directory that is half gone must not look whole.
    const auto doomed = ".gone-" + name;
    if (::renameat(lock.directory(), name.c_str(), lock.directory(), doomed.c_str()) != 0)
      return Error::sys(errno, fmt::format("rename {}", name));
    GANTRY_CHECK(remove_below(lock.directory(), doomed));
    done.removed.push_back(name);
  }
  return done;
}

}  // namespace gantry::prepared
