// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/used_versions.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace gantry::driver_setup {
namespace {

constexpr std::size_t kMountsBytes = std::size_t{4} << 20;
constexpr std::size_t kMostNamespaces = 8192;

std::vector<std::uint32_t> processes_of(const sys::Host& host) {
  std::vector<std::uint32_t> pids;
  for (const auto& name : host.list("/proc").value_or({})) {
    const auto pid = parse_u64(name);
    if (pid && *pid > 0 && *pid <= UINT32_MAX) pids.push_back(static_cast<std::uint32_t>(*pid));
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

// A directory's name ends there in the text of mountinfo, also when it was removed ("//deleted").
bool names_version(std::string_view mounts, std::string_view name) {
  const auto path = fmt::format("/.versions/{}", name);
  for (auto at = mounts.find(path); at != std::string_view::npos; at = mounts.find(path, at + 1)) {
    const auto end = at + path.size();
    if (end == mounts.size() || mounts[end] == '/' || mounts[end] == ' ') return true;
  }
  return false;
}

// A process that ends meanwhile has nothing mounted.
bool has_ended(const Error& error) {
  return error.code() == Errc::NotFound || error.sys_errno() == ESRCH ||
         error.sys_errno() == EINVAL;
}

class Search {
 public:
  Search(const sys::Host& host, const std::vector<std::string>& names)
      : host_(host), names_(names) {}

  std::map<std::string, VersionUser> run() {
    for (const auto pid : processes_of(host_)) {
      const auto name_space = host_.link(fmt::format("/proc/{}/ns/mnt", pid));
      if (name_space.ok() && !seen_.insert(*name_space).second) continue;
      if (seen_.size() > kMostNamespaces || !look_at(pid)) return all_in_use();
      if (used_.size() == names_.size()) break;
    }
    return std::move(used_);
  }

 private:
  bool look_at(std::uint32_t pid) {
    const auto mounts = host_.read(fmt::format("/proc/{}/mountinfo", pid), kMountsBytes);
    if (!mounts.ok()) return has_ended(mounts.error());
    for (const auto& name : names_) {
      if (used_.contains(name) || !names_version(*mounts, name)) continue;
      const auto command = host_.read_value(fmt::format("/proc/{}/comm", pid)).value_or("");
      used_.emplace(name, VersionUser{.pid = pid, .command = printable(command)});
    }
    return true;
  }

  std::map<std::string, VersionUser> all_in_use() {
    for (const auto& name : names_) used_.try_emplace(name);
    return std::move(used_);
  }

  const sys::Host& host_;
  const std::vector<std::string>& names_;
  std::set<std::string> seen_;
  std::map<std::string, VersionUser> used_;
};

}  // namespace

std::string describe(const VersionUser& user) {
  if (user.pid == 0) return "its files may be mounted: the mounts of a process cannot be read";
  return fmt::format("process {} ({}) has its files mounted", user.pid, user.command);
}

std::map<std::string, VersionUser> versions_in_use(const sys::Host& host,
                                                   const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return Search(host, names).run();
}

}  // namespace gantry::driver_setup
