// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/sys/trusted.hpp"
#include "vm/vfio/system_unit_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace gantry::vfio {
namespace {

constexpr std::size_t kProcessesLimit = std::size_t{1} << 20;
constexpr std::array<std::string_view, 3> kHierarchies{"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
                                                       "/sys/fs/cgroup/systemd"};

// What a line of /proc/PID/cgroup says about the hierarchy in which systemd keeps its units.
struct CgroupPath {
  std::vector<std::string> parts;
  // "/../../system.slice/...": we are in a cgroup namespace that the process is outside of, so the
  // path begins at a directory that is not known.
  bool is_relative = false;
};

std::optional<CgroupPath> parse_path(std::string_view line) {
  const auto fields = split(line, ':');
  if (fields.size() < 3) return std::nullopt;
  const bool unified = fields[0] == "0" && fields[1].empty();
  if (!unified && fields[1] != "name=systemd") return std::nullopt;
  CgroupPath path;
  for (const auto part : split(line.substr(fields[0].size() + fields[1].size() + 2), '/')) {
    if (part.empty()) continue;
    if (part != "..")
      path.parts.emplace_back(part);
    else if (path.parts.empty())
      path.is_relative = true;
    else
      return std::nullopt;
  }
  return path;
}

// The unit is the first name that is not of a slice: a service may have cgroups below its own.
std::size_t index_of_unit(const CgroupPath& path) {
  if (path.parts.empty() || path.parts.front() != "system.slice") return path.parts.size();
  const auto unit = std::find_if(path.parts.begin(), path.parts.end(),
                                 [](const std::string& part) { return !part.ends_with(".slice"); });
  const auto index = static_cast<std::size_t>(unit - path.parts.begin());
  return unit != path.parts.end() && unit->ends_with(".service") ? index : path.parts.size();
}

// Who may write to a directory chooses the names in it.
bool is_of_root(const sys::Host& host, const std::string& directory) {
  const auto root = host.info("/");
  const auto info = host.info(directory);
  return root.ok() && info.ok() && info->kind == sys::FileKind::Directory &&
         sys::check_trusted(info->uid, info->mode, root->uid, directory).ok();
}

bool has_process(const sys::Host& host, const std::string& directory, std::uint32_t pid) {
  const auto text = host.read(directory + "/cgroup.procs", kProcessesLimit);
  if (!text.ok()) return false;
  const auto all = lines(*text);
  return std::any_of(all.begin(), all.end(),
                     [&](std::string_view line) { return parse_u64(line) == pid; });
}

bool is_proven(const sys::Host& host, std::string directory, const CgroupPath& path,
               std::size_t unit, std::uint32_t pid) {
  for (std::size_t i = 0; i < path.parts.size(); ++i) {
    if (i <= unit && !is_of_root(host, directory)) return false;
    directory += "/" + path.parts[i];
    if (i == unit && !host.exists(directory)) return false;
  }
  return !path.is_relative || has_process(host, directory, pid);
}

}  // namespace

std::string system_unit(const sys::Host& host, std::uint32_t pid, std::string_view cgroup) {
  for (const auto line : lines(cgroup)) {
    const auto path = parse_path(line);
    if (!path) continue;
    const auto unit = index_of_unit(*path);
    if (unit >= path->parts.size()) continue;
    for (const auto hierarchy : kHierarchies) {
      if (is_proven(host, std::string(hierarchy), *path, unit, pid)) return path->parts[unit];
    }
  }
  return "";
}

}  // namespace gantry::vfio
