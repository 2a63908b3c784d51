// SPDX-License-Identifier: Apache-2.0
#include "gantry/driver_user.hpp"

#include "base/core/text.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

struct Entry {
  std::uint32_t id = 0;
  std::uint32_t group = 0;
};

// passwd: name:x:uid:gid:...   group: name:x:gid:...
std::optional<Entry> look_up(const sys::Host& host, std::string_view file, std::string_view name) {
  const auto text = host.read(file);
  if (!text.ok()) return std::nullopt;
  for (auto line : lines(*text)) {
    const auto fields = split(line, ':');
    if (fields.size() < 3 || fields[0] != name) continue;
    const auto id = parse_u64(fields[2]);
    const auto group = fields.size() > 3 ? parse_u64(fields[3]) : std::nullopt;
    if (!id || *id > UINT32_MAX) continue;
    return Entry{.id = static_cast<std::uint32_t>(*id),
                 .group = static_cast<std::uint32_t>(group.value_or(*id))};
  }
  return std::nullopt;
}

Result<Entry> user_entry(const sys::Host& host, std::string_view text) {
  if (const auto number = parse_u64(text); number && *number <= UINT32_MAX) {
    const auto id = static_cast<std::uint32_t>(*number);
    return Entry{.id = id, .group = id};
  }
  if (auto entry = look_up(host, "/etc/passwd", text)) return *entry;
  if (text == "root") return Entry{};  // minimal systems have no passwd file
  return Error(Errc::NotFound, fmt::format("no user {} in {}", text, host.outside("/etc/passwd")));
}

Result<std::uint32_t> group_id(const sys::Host& host, std::string_view text) {
  if (const auto number = parse_u64(text); number && *number <= UINT32_MAX) {
    return static_cast<std::uint32_t>(*number);
  }
  if (auto entry = look_up(host, "/etc/group", text)) return entry->id;
  if (text == "root") return std::uint32_t{0};
  return Error(Errc::NotFound, fmt::format("no group {} in {}", text, host.outside("/etc/group")));
}

}  // namespace

DriverUser default_driver_user() {
  if (::geteuid() == 0) return {};
  DriverUser user{.uid = ::geteuid(), .gid = ::getegid(), .groups = {}};
  const int count = ::getgroups(0, nullptr);
  if (count > 0) {
    user.groups.resize(static_cast<std::size_t>(count));
    const int got = ::getgroups(count, user.groups.data());
    user.groups.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  }
  return user;
}

Result<DriverUser> parse_driver_user(const sys::Host& host, std::string_view text) {
  const auto colon = text.find(':');
  GANTRY_TRY(const Entry user, user_entry(host, text.substr(0, colon)));
  DriverUser who{.uid = user.id, .gid = user.group, .groups = {}};
  if (colon != std::string_view::npos) {
    GANTRY_TRY(who.gid, group_id(host, text.substr(colon + 1)));
  }
  return who;
}

bool may_open(const DriverUser& user, const model::DeviceNode& node) {
  const bool in_group = user.gid == node.gid || std::find(user.groups.begin(), user.groups.end(),
                                                          node.gid) != user.groups.end();
  // As in the kernel: the first class that matches decides, even if a later one would allow access.
  const unsigned shift = user.uid == node.uid ? 6 : in_group ? 3 : 0;
  return ((node.mode >> shift) & 06U) == 06U;
}

std::optional<std::string> configured_driver_user(const sys::Host& host) {
  const auto text = host.read("/etc/nvidia-container-runtime/config.toml");
  if (!text.ok()) return std::nullopt;
  std::string_view section;
  for (auto line : lines(*text)) {
    line = trim(line);
    if (line.starts_with('[')) section = line;
    if (section != "[nvidia-container-cli]" || !line.starts_with("user")) continue;
    const auto open = line.find('"');
    const auto close = line.rfind('"');
    const bool assignment = contains(line.substr(0, open), "=");
    if (assignment && open != std::string_view::npos && close > open) {
      return std::string(line.substr(open + 1, close - open - 1));
    }
  }
  return std::nullopt;
}

}  // namespace gantry::cli
