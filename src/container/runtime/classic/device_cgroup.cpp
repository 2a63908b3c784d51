// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/device_cgroup.hpp"

#include "base/core/text.hpp"
#include "container/runtime/classic/device_bpf_internal.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::runtime {
namespace {

struct CgroupMount {
  std::string root;   // the cgroup that the mount shows
  std::string point;  // the mount point
};

bool has_word(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// proc(5): blanks, line ends and backslashes are three octal digits.
std::string unescaped(std::string_view field) {
  std::string plain;
  for (std::size_t i = 0; i < field.size(); ++i) {
    const auto digits = field.substr(i, 4);
    const auto value =
        digits.size() == 4 && digits[0] == '\\' ? parse_u64(digits.substr(1), 8) : std::nullopt;
    plain += value ? static_cast<char>(*value & 0xffU) : field[i];
    if (value) i += 3;
  }
  return plain;
}

std::optional<CgroupMount> mount_of(std::string_view line, CgroupVersion version) {
  const auto dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto before = split(line.substr(0, dash), ' ');
  const auto after = split(line.substr(dash + 3), ' ');
  if (before.size() < 6 || after.size() < 3) return std::nullopt;
  const bool wanted = version == CgroupVersion::V2
                          ? after[0] == "cgroup2"
                          : after[0] == "cgroup" && has_word(after[2], "devices");
  if (!wanted) return std::nullopt;
  return CgroupMount{.root = unescaped(before[3]), .point = unescaped(before[4])};
}

// The directory of the cgroup below one mount, if that mount shows it.
std::optional<std::string> seen_at(const CgroupMount& mount, std::string_view cgroup) {
  if (mount.root == "/") return cgroup == "/" ? mount.point : mount.point + std::string(cgroup);
  if (!cgroup.starts_with(mount.root)) return std::nullopt;
  const auto below = cgroup.substr(mount.root.size());
  if (!below.empty() && below.front() != '/') return std::nullopt;
  return mount.point + std::string(below);
}

bool climbs(std::string_view path) {
  const auto parts = split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

struct Membership {
  CgroupVersion version = CgroupVersion::V2;
  std::string path;
};

// "8:devices:/docker/71ab" is a v1 hierarchy, "0::/..." is v2. v1 comes first: runtimes use its
// devices controller if there is one.
std::vector<Membership> memberships(std::string_view proc_cgroup) {
  std::vector<Membership> found;
  for (auto line : lines(proc_cgroup)) {
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (has_word(controllers, "devices")) {
      found.insert(found.begin(), Membership{CgroupVersion::V1, path});
    } else if (line.substr(0, first) == "0" && controllers.empty()) {
      found.push_back({CgroupVersion::V2, path});
    }
  }
  return found;
}

std::optional<CgroupLocation> seen_in(std::string_view mountinfo, const Membership& member) {
  for (auto line : lines(mountinfo)) {
    const auto mount = mount_of(line, member.version);
    if (!mount) continue;
    if (auto directory = seen_at(*mount, member.path)) {
      return CgroupLocation{.version = member.version, .directory = *directory};
    }
  }
  return std::nullopt;
}

Status allow_v1(int directory, std::span<const DeviceRule> rules, const std::string& where) {
  const sys::UniqueFd file(::openat(directory, "devices.allow", O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return Error::sys(errno, fmt::format("open {}/devices.allow", where));
  for (const auto& rule : rules) {
    const auto line = to_devices_allow(rule);
    if (::write(file.get(), line.data(), line.size()) < 0) {
      return Error::sys(errno, fmt::format("writing \"{}\" to {}/devices.allow", line, where));
    }
  }
  return {};
}

Status allow_v2(int directory, std::span<const DeviceRule> rules) {
  GANTRY_TRY(const AttachedPrograms attached, attached_device_programs(directory));
  for (const auto id : attached.ids) {
    GANTRY_TRY(const sys::UniqueFd now, device_program(id));
    GANTRY_TRY(const std::vector<bpf_insn> before, instructions_of(now.get()));
    GANTRY_TRY(const std::vector<bpf_insn> code, allow_first(rules, before));
    if (code.size() == before.size()) continue;  // allowed already
    GANTRY_TRY(const sys::UniqueFd next, load_device_program(code));
    GANTRY_CHECK(replace_device_program(directory, now.get(), next.get(), attached.flags));
  }
  return {};
}

}  // namespace

std::string to_devices_allow(const DeviceRule& rule) {
  return fmt::format("c {}:{} rw", rule.major, rule.minor);
}

Result<std::optional<CgroupLocation>> device_cgroup(std::string_view proc_cgroup,
                                                    std::string_view mountinfo) {
  const auto members = memberships(proc_cgroup);
  if (members.empty()) {
    return Error(Errc::NotFound, "the process is not in a cgroup that controls devices");
  }
  std::optional<Error> hidden;
  for (const auto& member : members) {
    if (member.path == "/") continue;  // refuses nothing
    if (!member.path.starts_with('/') || climbs(member.path)) {
      hidden =
          Error(Errc::NotFound, fmt::format("this process cannot see the cgroup {}", member.path));
    } else if (auto place = seen_in(mountinfo, member)) {
      return place;
    } else {
      hidden = Error(
          Errc::NotFound,
          fmt::format("no cgroup {} mount shows {}",
                      member.version == CgroupVersion::V1 ? "v1 devices" : "v2", member.path));
    }
  }
  if (hidden) return *std::move(hidden);
  return std::optional<CgroupLocation>();
}

Result<DeviceCgroup> DeviceCgroup::open(const CgroupLocation& place) {
  sys::UniqueFd fd(::open(place.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", place.directory));
  return DeviceCgroup(place, std::move(fd));
}

Status DeviceCgroup::allow(std::span<const DeviceRule> rules) const {
  if (rules.empty()) return {};
  auto done = place_.version == CgroupVersion::V1
                  ? allow_v1(directory_.get(), rules, place_.directory)
                  : allow_v2(directory_.get(), rules);
  if (done.ok()) return {};
  return std::move(done).error().in(
      fmt::format("allowing {} devices in the cgroup {}", rules.size(), place_.directory));
}

}  // namespace gantry::runtime
