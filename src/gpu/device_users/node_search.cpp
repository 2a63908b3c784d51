// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_users/node_search.hpp"

#include "base/core/text.hpp"
#include "base/sys/kernel.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::device_users {
namespace {

constexpr std::size_t kMapsLimit = std::size_t{64} << 20U;  // a process may have many mappings

std::string_view last_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The kernel shows a node that was removed, and perhaps made again, as "/dev/nvidia0 (deleted)".
std::string_view without_deleted(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path;
}

std::optional<dev_t> device_number(const std::string& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0 || !S_ISCHR(found.st_mode)) return std::nullopt;
  return found.st_rdev;
}

void add_node_once(std::vector<std::string>& found, const std::string& node) {
  if (std::find(found.begin(), found.end(), node) == found.end()) found.push_back(node);
}

}  // namespace

NodeSearch::NodeSearch(const sys::Host& host, std::span<const std::string> nodes) : host_(host) {
  const bool here = sys::real_kernel()->is_this_machine(host);
  for (const auto& node : nodes) {
    nodes_.push_back({.path = node, .number = std::nullopt});
    if (!here) continue;
    if (const auto info = host.device(node); info.ok())
      nodes_.back().number = makedev(info->major, info->minor);
  }
}

const NodeSearch::SearchedNode* NodeSearch::find(std::string_view path,
                                                 const std::string& file) const {
  path = without_deleted(path);
  const SearchedNode* named = nullptr;
  bool may_be_ours = path.starts_with("/dev/");
  bool has_numbers = false;
  for (const auto& node : nodes_) {
    if (path == node.path) named = &node;
    may_be_ours = may_be_ours || last_name(path) == last_name(node.path);
    has_numbers = has_numbers || node.number;
  }
  // Other files are not asked for their number: one of them may lie on a server that hangs.
  const auto number =
      may_be_ours && has_numbers ? device_number(host_.outside(file)) : std::nullopt;
  if (!number) return named;
  for (const auto& node : nodes_) {
    if (node.number == number) return &node;
  }
  return named != nullptr && !named->number ? named : nullptr;
}

Result<std::vector<std::string>> NodeSearch::used_by(std::uint32_t pid) const {
  std::vector<std::string> found;
  const auto directory = fmt::format("/proc/{}/fd", pid);
  const auto names = host_.list(directory);
  if (!names.ok() && names.error().code() == Errc::Denied) return names.error();
  if (!names.ok()) return found;  // it has ended
  for (const auto& name : *names) {
    const auto file = fmt::format("{}/{}", directory, name);
    const auto target = host_.link(file);
    if (!target.ok() || !target->starts_with('/')) continue;
    if (const auto* node = find(*target, file); node != nullptr) add_node_once(found, node->path);
  }
  add_mapped(pid, found);
  return found;
}

// "7f00-7f01 rw-s 00000000 00:06 440    /dev/nvidia0"
void NodeSearch::add_mapped(std::uint32_t pid, std::vector<std::string>& found) const {
  const auto maps = host_.read(fmt::format("/proc/{}/maps", pid), kMapsLimit);
  if (!maps.ok()) return;
  for (const auto line : lines(*maps)) {
    const auto at = line.find('/');
    if (at == std::string_view::npos) continue;
    const auto range = line.substr(0, line.find(' '));
    const auto* node =
        find(trim(line.substr(at)), fmt::format("/proc/{}/map_files/{}", pid, range));
    if (node != nullptr) add_node_once(found, node->path);
  }
}

}  // namespace gantry::device_users
