// SPDX-License-Identifier: Apache-2.0
#include "base/sys/host.hpp"

#include "base/core/text.hpp"
#include "base/sys/open_in_root.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace gantry::sys {
namespace {

std::optional<FileInfo> parse_table_fields(const std::vector<std::string_view>& f) {
  if (f.size() != 7 || (f[1] != "c" && f[1] != "b")) return std::nullopt;
  const auto major_number = parse_u64(f[2]);
  const auto minor_number = parse_u64(f[3]);
  const auto mode = parse_u64(f[4], 8);
  const auto uid = parse_u64(f[5]);
  const auto gid = parse_u64(f[6]);
  if (!major_number || !minor_number || !mode || !uid || !gid) return std::nullopt;
  return FileInfo{.kind = f[1] == "c" ? FileKind::CharDevice : FileKind::BlockDevice,
                  .mode = static_cast<std::uint32_t>(*mode),
                  .uid = static_cast<std::uint32_t>(*uid),
                  .gid = static_cast<std::uint32_t>(*gid),
                  .major = static_cast<std::uint32_t>(*major_number),
                  .minor = static_cast<std::uint32_t>(*minor_number)};
}

}  // namespace

Result<Host> Host::at(std::string_view root) {
  std::array<char, PATH_MAX> real{};
  const std::string given(root);
  if (::realpath(given.c_str(), real.data()) == nullptr) {
    return Error::sys(errno, fmt::format("root {}", given));
  }
  UniqueFd fd(::open(real.data(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("root {}", given));
  Host host(real.data(), std::move(fd));
  host.read_device_table();
  return host;
}

std::string Host::outside(std::string_view path) const {
  if (is_live()) return std::string(path);
  return fmt::format("{}/{}", root_, relative_to_root(path));
}

Result<UniqueFd> Host::open(std::string_view path, int flags) const {
  return open_in_root(fd_.get(), path, flags, outside(path));
}

Result<std::string> Host::read(std::string_view path, std::size_t limit) const {
  // O_NONBLOCK: a FIFO in a hostile tree must not make us wait for a writer.
  GANTRY_TRY(const UniqueFd fd, open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  return read_regular(fd.get(), limit, outside(path));
}

std::optional<std::string> Host::read_value(std::string_view path) const {
  auto content = read(path);
  if (!content.ok()) return std::nullopt;
  return std::string(trim(*content));
}

Result<std::vector<std::string>> Host::list(std::string_view path) const {
  GANTRY_TRY(UniqueFd fd, open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
  return list_directory(std::move(fd), SIZE_MAX, outside(path));
}

bool Host::exists(std::string_view path) const {
  return open(path, O_PATH).ok();
}

Result<std::string> Host::link(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH | O_NOFOLLOW));
  return read_link(fd.get(), path);
}

Result<std::string> Host::resolve(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH));
  std::array<char, PATH_MAX> buffer{};
  const auto self = fmt::format("/proc/self/fd/{}", fd.get());
  const auto length = ::readlink(self.c_str(), buffer.data(), buffer.size());
  if (length < 0) return Error::sys(errno, fmt::format("resolve {}", outside(path)));
  const std::string_view full(buffer.data(), static_cast<std::size_t>(length));
  if (is_live()) return std::string(full);
  if (full == root_) return std::string("/");
  if (!full.starts_with(root_ + "/")) {
    return Error(Errc::Invalid,
                 fmt::format("resolve {}: it was moved out of the root directory", outside(path)));
  }
  return std::string(full.substr(root_.size()));
}

Result<FileInfo> Host::info(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH));
  return file_info(fd.get(), path);
}

Result<FileInfo> Host::link_info(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH | O_NOFOLLOW));
  return file_info(fd.get(), path);
}

Result<FileInfo> Host::device(std::string_view path) const {
  for (const auto& node : table_) {
    if (node.path == path) return node.info;
  }
  GANTRY_TRY(const FileInfo found, info(path));
  if (found.kind != FileKind::CharDevice && found.kind != FileKind::BlockDevice) {
    return Error(Errc::Invalid, fmt::format("{} is not a device node", outside(path)));
  }
  return found;
}

std::vector<std::string> Host::device_paths(std::string_view directory) const {
  std::vector<std::string> paths;
  const auto names = list(directory);
  if (names.ok()) {
    for (const auto& name : *names) {
      auto path = fmt::format("{}/{}", directory, name);
      const auto what = link_info(path);
      if (what.ok() &&
          (what->kind == FileKind::CharDevice || what->kind == FileKind::BlockDevice)) {
        paths.push_back(std::move(path));
      }
    }
  }
  const auto prefix = fmt::format("{}/", directory);
  for (const auto& node : table_) {
    const bool direct =
        node.path.starts_with(prefix) && node.path.find('/', prefix.size()) == std::string::npos;
    if (direct) paths.push_back(node.path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

void Host::read_device_table() {
  if (is_live()) return;
  const auto table = read("/dev.table");
  if (!table.ok()) return;
  for (auto line : lines(*table)) {
    std::vector<std::string_view> fields;
    for (auto field : split(trim(line), ' ')) {
      if (!field.empty()) fields.push_back(field);
    }
    if (auto info = parse_table_fields(fields)) table_.push_back({std::string(fields[0]), *info});
  }
}

}  // namespace gantry::sys
