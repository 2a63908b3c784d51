// SPDX-License-Identifier: Apache-2.0
#include "container/driver_dir/garbage.hpp"

#include "base/sys/remove_tree.hpp"
#include "container/driver_dir/current.hpp"
#include "container/driver_dir/directory_lock_internal.hpp"
#include "container/driver_dir/find_mounted_internal.hpp"
#include "container/driver_dir/layout_internal.hpp"
#include "container/plan/driver_paths.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <set>
#include <string_view>

namespace gantry::driver_dir {
namespace {

// Renamed before it is removed: an incomplete directory must not look complete.
constexpr std::string_view kRemovedPrefix = ".gone-";

std::string gone(const std::string& name) {
  return fmt::format("{}{}", kRemovedPrefix, name);
}

bool is_young(int directory, const std::string& name, std::chrono::seconds youngest) {
  struct stat status {};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return true;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  // The ctime: a directory is renamed when it is finished and touched when it is replaced.
  return now.tv_sec - status.st_ctim.tv_sec < youngest.count();
}

// Directories that are neither current nor young, and those whose removal was interrupted.
struct Candidates {
  std::vector<std::string> old;
  std::vector<std::string> begun;  // without ".gone-"
  bool empty() const { return old.empty() && begun.empty(); }
};

Candidates candidates(const std::vector<std::string>& names, const std::string& now) {
  Candidates found;
  for (const auto& name : names) {
    if (!version_in_name(name).empty()) {
      if (name != now) found.old.push_back(name);
    } else if (name.starts_with(kRemovedPrefix)) {
      auto former = name.substr(kRemovedPrefix.size());
      if (!version_in_name(former).empty()) found.begun.push_back(std::move(former));
    }
  }
  return found;
}

class GarbageCollector {
 public:
  GarbageCollector(int directory, std::string processes)
      : directory_(directory), processes_(std::move(processes)) {}

  Result<GarbageResult> collect_garbage(const Candidates& found) {
    // These are already incomplete: one that is mounted keeps its hidden name.
    GANTRY_TRY(const auto begun, mounted(found.begun));
    for (const auto& name : found.begun) {
      begun.contains(gone(name)) ? done_.in_use.push_back(name) : remove(name);
    }
    GANTRY_TRY(const auto hidden, hide_unused(found.old));
    // A container may have mounted one between the check and the rename. After the rename no
    // container can, so a second check is final.
    GANTRY_TRY(const auto late, mounted(hidden));
    for (const auto& name : hidden) late.contains(gone(name)) ? show(name) : remove(name);
    return std::move(done_);
  }

 private:
  // For directories that have been renamed.
  Result<std::set<std::string>> mounted(const std::vector<std::string>& names) const {
    if (names.empty()) return std::set<std::string>();
    std::vector<std::string> hidden;
    std::transform(names.begin(), names.end(), std::back_inserter(hidden), gone);
    return find_mounted(hidden, processes_);
  }

  Result<std::vector<std::string>> hide_unused(const std::vector<std::string>& old) {
    std::vector<std::string> hidden;
    if (old.empty()) return hidden;
    GANTRY_TRY(const auto used, find_mounted(old, processes_));
    for (const auto& name : old) {
      if (used.contains(name)) {
        done_.in_use.push_back(name);
      } else if (rename(name, gone(name))) {
        hidden.push_back(name);
      }
    }
    return hidden;
  }

  void show(const std::string& name) {
    done_.in_use.push_back(name);
    rename(gone(name), name);
  }

  void remove(const std::string& name) {
    const auto removed = sys::remove_tree(directory_, gone(name));
    if (removed.ok()) {
      done_.removed.push_back(name);
    } else {
      done_.failed.push_back(
          fmt::format("{} was not removed: {}; the next `gantry cdi refresh` tries again",
                      gone(name), removed.error().text()));
    }
  }

  bool rename(const std::string& from, const std::string& to) {
    if (::renameat(directory_, from.c_str(), directory_, to.c_str()) == 0) return true;
    done_.failed.push_back(Error::sys(errno, fmt::format("rename {} to {}", from, to)).text());
    return false;
  }

  int directory_;
  std::string processes_;
  GarbageResult done_;
};

}  // namespace

Result<GarbageResult> collect_garbage(const sys::Host& host, const GarbageOptions& options) {
  const auto names = host.list(plan::kDriverDirectories);
  if (!names.ok()) return GarbageResult{};
  GANTRY_TRY(const auto now, current(host));
  auto found = candidates(*names, now.name);
  if (found.empty()) return GarbageResult{};

  GANTRY_TRY(const auto lock, DirectoryLock::take(host, std::chrono::milliseconds(1000)));
  GANTRY_TRY(const auto still, current(host));
  std::erase_if(found.old, [&](const std::string& name) {
    return name == still.name || is_young(lock.directory(), name, options.youngest);
  });
  if (found.empty()) return GarbageResult{};
  GANTRY_TRY(auto processes, find_host_procfs(host, options));
  return GarbageCollector(lock.directory(), std::move(processes)).collect_garbage(found);
}

Result<GarbageResult> unpublish(const sys::Host& host, const GarbageOptions& options) {
  const auto names = host.list(plan::kDriverDirectories);
  if (!names.ok()) return GarbageResult{};
  GANTRY_TRY(const auto lock, DirectoryLock::take(host, std::chrono::milliseconds(1000)));
  GANTRY_TRY(auto processes, find_host_procfs(host, options));
  const std::string link(plan::kCurrentDriverLink.substr(plan::kCurrentDriverLink.rfind('/') + 1));
  if (::unlinkat(lock.directory(), link.c_str(), 0) != 0 && errno != ENOENT) {
    return Error::sys(errno, fmt::format("removing {}", plan::kCurrentDriverLink));
  }
  return GarbageCollector(lock.directory(), std::move(processes))
      .collect_garbage(candidates(*names, ""));
}

}  // namespace gantry::driver_dir
