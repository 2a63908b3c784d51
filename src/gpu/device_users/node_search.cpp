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

// A thread of the kernel or a process that has ended: neither has descriptors.
bool has_no_descriptors(const sys::Host& host, std::uint32_t pid) {
  constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD
  constexpr std::size_t kFlags = 6;                    // words after the state, see proc(5)
  const auto stat = host.read(fmt::format("/proc/{}/stat", pid));
  if (!stat.ok()) return stat.error().code() == Errc::NotFound;
  const auto end = stat->rfind(") ");  // of the name, which may contain any character
  if (end == std::string::npos) return false;
  const auto words = split(std::string_view(*stat).substr(end + 2), ' ');
  const auto flags = words.size() > kFlags ? parse_u64(words[kFlags]).value_or(0) : 0;
  return words.front() == "Z" || words.front() == "X" || (flags & kKernelThread) != 0;
}

UsedNode& entry_of(std::vector<UsedNode>& found, const std::string& path) {
  const auto known = std::find_if(found.begin(), found.end(),
                                  [&](const UsedNode& node) { return node.path == path; });
  if (known != found.end()) return *known;
  return found.emplace_back(UsedNode{.path = path});
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
  GANTRY_TRY(const auto uses, uses_of(pid));
  std::vector<std::string> paths;
  for (const auto& node : uses) paths.push_back(node.path);
  return paths;
}

Result<std::vector<UsedNode>> NodeSearch::uses_of(std::uint32_t pid) const {
  auto uses = read_uses(pid);
  if (uses.ok() || !has_no_descriptors(host_, pid)) return uses;
  return std::vector<UsedNode>();
}

Result<std::vector<UsedNode>> NodeSearch::read_uses(std::uint32_t pid) const {
  std::vector<UsedNode> found;
  const auto directory = fmt::format("/proc/{}/fd", pid);
  const auto names = host_.list(directory);
  if (!names.ok() && names.error().code() == Errc::Denied) return names.error();
  if (!names.ok()) return found;  // it has ended
  for (const auto& name : *names) {
    const auto file = fmt::format("{}/{}", directory, name);
    const auto target = host_.link(file);
    // Root may list them without CAP_SYS_PTRACE, and sees not where they lead.
    if (!target.ok() && target.error().code() == Errc::Denied) return target.error();
    if (!target.ok() || !target->starts_with('/')) continue;
    if (const auto* node = find(*target, file); node != nullptr)
      ++entry_of(found, node->path).opens;
  }
  GANTRY_CHECK(add_mapped(pid, found));
  return found;
}

// "7f00-7f01 rw-s 00000000 00:06 440    /dev/nvidia0"
Status NodeSearch::add_mapped(std::uint32_t pid, std::vector<UsedNode>& found) const {
  const auto maps = host_.read(fmt::format("/proc/{}/maps", pid), kMapsLimit);
  if (!maps.ok()) return maps.error().code() == Errc::Denied ? Status(maps.error()) : Status();
  for (const auto line : lines(*maps)) {
    const auto at = line.find('/');
    if (at == std::string_view::npos) continue;
    const auto range = line.substr(0, line.find(' '));
    const auto* node =
        find(trim(line.substr(at)), fmt::format("/proc/{}/map_files/{}", pid, range));
    if (node == nullptr) continue;
    auto& entry = entry_of(found, node->path);
    entry.opens = std::max(entry.opens, 1U);
  }
  return {};
}

}  // namespace gantry::device_users
