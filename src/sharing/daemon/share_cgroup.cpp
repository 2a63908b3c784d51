// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/share_cgroup.hpp"

#include "base/core/text.hpp"
#include "base/sys/unique_fd.hpp"
#include "sharing/daemon/peer_identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

namespace gantry::daemon {
namespace {

// The mount point of cgroup v2; next to v1 it is one of many.
std::string hierarchy() {
  constexpr std::array<std::string_view, 2> kPlaces{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
  for (const auto place : kPlaces) {
    if (::access(fmt::format("{}/cgroup.procs", place).c_str(), F_OK) == 0)
      return std::string(place);
  }
  return "";
}

// "0::/user.slice"
std::optional<std::string_view> path_in(std::string_view cgroup) {
  for (const auto line : lines(cgroup)) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return std::nullopt;
}

std::string cgroup_name(std::string_view share) {
  return fmt::format("/gantry-share-{}", share);
}

bool move_into(pid_t pid, const std::string& directory) {
  const sys::UniqueFd file(::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  const auto text = fmt::format("{}\n", pid);
  return file.valid() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

void remove_left_cgroup(const std::string& directory, std::string_view share) {
  const bool is_ours = directory.starts_with("/sys/fs/cgroup/") &&
                       directory.find("/../") == std::string::npos &&
                       directory.ends_with(cgroup_name(share));
  if (is_ours) ::rmdir(directory.c_str());
}

ShareCgroup ShareCgroup::create_around(pid_t pid, std::string_view share) {
  const auto root = hierarchy();
  const auto cgroup = cgroup_of(pid);
  const auto now = path_in(cgroup);
  if (root.empty() || !now) return {};
  const auto name = cgroup_name(share);
  // A previous daemon may have moved it.
  if (now->ends_with(name)) return {root + std::string(*now), std::string(*now)};
  const auto path = fmt::format("{}{}", *now == "/" ? "" : *now, name);
  const auto directory = root + path;
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return {};
  ShareCgroup made(directory, path);
  if (!move_into(pid, directory)) return {};
  return made;
}

ShareCgroup::ShareCgroup(ShareCgroup&& other) noexcept
    : directory_(std::exchange(other.directory_, "")), path_(std::exchange(other.path_, "")) {}

ShareCgroup& ShareCgroup::operator=(ShareCgroup&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(path_, other.path_);
  return *this;
}

bool ShareCgroup::remove() {
  if (!directory_.empty() && ::rmdir(directory_.c_str()) != 0 && errno == EBUSY) return false;
  directory_.clear();
  return true;
}

bool ShareCgroup::has(std::string_view cgroup) const {
  if (path_.empty()) return false;
  const auto path = path_in(cgroup);
  if (!path || !path->starts_with(path_)) return false;
  return path->size() == path_.size() || (*path)[path_.size()] == '/';
}

}  // namespace gantry::daemon
