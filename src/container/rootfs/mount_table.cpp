// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/mount_table.hpp"

#include "base/core/text.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/open_in_root.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>

namespace gantry::rootfs {
namespace {

constexpr std::size_t kMaxMountTableBytes = std::size_t{16}
                                            << 20;  // a node with thousands of pods has 2 MiB
constexpr const char* kPath = "/proc/thread-self/mountinfo";

// proc(5) escapes blanks, newlines and backslashes as octal numbers: "\040".
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' ? parse_u64(text.substr(i + 1, 3), 8) : std::nullopt;
    result += code && *code < 256 ? static_cast<char>(*code) : text[i];
    if (code && *code < 256) i += 3;
  }
  return result;
}

std::optional<MountEntry> mount_from(std::string_view line) {
  constexpr std::string_view kMiddle = " - ";
  const auto middle = line.find(kMiddle);
  if (middle == std::string_view::npos) return std::nullopt;
  const auto front = split(line.substr(0, middle), ' ');
  const auto back = split(line.substr(middle + kMiddle.size()), ' ');
  if (front.size() < 6 || back.empty()) return std::nullopt;
  const auto id = parse_u64(front[0]);
  if (!id) return std::nullopt;
  const bool shared = std::any_of(front.begin() + 6, front.end(), [](std::string_view word) {
    return word.starts_with("shared:");
  });
  return MountEntry{.id = *id,
                    .device = std::string(front[2]),
                    .place = unescaped(front[4]),
                    .type = std::string(back[0]),
                    .shared = shared,
                    .parent = parse_u64(front[1]).value_or(0),
                    .root = unescaped(front[3])};
}

Result<std::vector<MountEntry>> mounts_here() {
  const sys::UniqueFd file(::open(kPath, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Error::sys(errno, kPath);
  GANTRY_TRY(const std::string text, sys::read_regular(file.get(), kMaxMountTableBytes, kPath));
  return parse_mountinfo(text);
}

}  // namespace

Result<std::string> path_of_descriptor(int fd) {
  GANTRY_TRY(const std::string link, sys::descriptor_path(fd));
  std::array<char, PATH_MAX> buffer{};
  const auto length = ::readlink(link.c_str(), buffer.data(), buffer.size());
  if (length < 0) return Error::sys(errno, link);
  return std::string(buffer.data(), static_cast<std::size_t>(length));
}

std::vector<MountEntry> parse_mountinfo(std::string_view mountinfo) {
  std::vector<MountEntry> mounts;
  for (const auto line : lines(mountinfo)) {
    if (auto mount = mount_from(line)) mounts.push_back(*std::move(mount));
  }
  return mounts;
}

Result<std::vector<std::uint64_t>> shared_mounts() {
  GANTRY_TRY(const auto mounts, mounts_here());
  std::vector<std::uint64_t> shared;
  for (const auto& mount : mounts) {
    if (mount.shared) shared.push_back(mount.id);
  }
  return shared;
}

bool is_container_tmpfs(const std::vector<MountEntry>& mounts, std::uint64_t id,
                        std::string_view root) {
  const auto found =
      std::find_if(mounts.begin(), mounts.end(), [&](const MountEntry& m) { return m.id == id; });
  if (found == mounts.end() || found->type != "tmpfs" || root == "/") return false;
  const std::string below = std::string(root) + "/";
  return std::all_of(mounts.begin(), mounts.end(), [&](const MountEntry& mount) {
    return mount.device != found->device || mount.place.starts_with(below);
  });
}

Result<bool> is_container_tmpfs(std::uint64_t id, int root) {
  GANTRY_TRY(const std::string place, path_of_descriptor(root));
  GANTRY_TRY(const auto mounts, mounts_here());
  return is_container_tmpfs(mounts, id, place);
}

}  // namespace gantry::rootfs
