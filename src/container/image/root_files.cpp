// SPDX-License-Identifier: Apache-2.0
#include "container/image/root_files.hpp"

#include "base/core/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace gantry::image {
namespace {

constexpr std::size_t kMostDirectoryNames = 65536;  // in one directory

struct KeptFile {
  std::string_view pattern;
  std::size_t limit;
};
// The files whose content is read; of all others the name is enough.
constexpr std::array kKeptFiles{
    KeptFile{"*/torch/version.py", std::size_t{1} << 20U},
    KeptFile{"*/tensorflow/python/platform/build_info.py", std::size_t{1} << 20U},
    KeptFile{"/etc/ld.so.cache", std::size_t{8} << 20U},
    KeptFile{"*/compat/libcuda.so.*.*", std::size_t{128} << 20U},
};

Result<sys::UniqueFd> open_regular(const rootfs::Root& root, std::string_view path) {
  // Checks the type before opening: opening a device of the image could have side effects.
  GANTRY_TRY(const auto info, root.info(path));
  if (info.kind != sys::FileKind::Regular) return Error(Errc::Invalid, "not a regular file");
  return root.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

}  // namespace

bool any_name(const RootFiles& files, std::string_view directory, std::string_view pattern) {
  const auto names = files.list(directory);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return glob_match(pattern, name); });
}

std::optional<std::uint16_t> elf_machine_of(std::string_view head) {
  constexpr std::size_t kMachineAt = 18;
  constexpr std::size_t kByteOrderAt = 5;
  if (head.size() < kElfHead || !head.starts_with("\x7f"
                                                  "ELF"))
    return std::nullopt;
  const auto low = static_cast<unsigned char>(head[kMachineAt]);
  const auto high = static_cast<unsigned char>(head[kMachineAt + 1]);
  const bool big_endian = head[kByteOrderAt] == 2;
  return static_cast<std::uint16_t>(big_endian ? low << 8U | high : high << 8U | low);
}

std::size_t kept_limit(std::string_view path) {
  for (const auto& kept : kKeptFiles) {
    if (glob_match(kept.pattern, path)) return kept.limit;
  }
  return 0;
}

bool DirectoryFiles::exists(std::string_view path) const {
  return root_.info(path).ok();
}

std::optional<std::uint64_t> DirectoryFiles::size(std::string_view path) const {
  const auto info = root_.info(path);
  if (!info.ok() || info->kind != sys::FileKind::Regular) return std::nullopt;
  return info->size;
}

std::optional<std::string> DirectoryFiles::read(std::string_view path, std::size_t limit) const {
  auto text = root_.read(path, limit);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

std::optional<std::uint16_t> DirectoryFiles::elf_machine(std::string_view path) const {
  const auto fd = open_regular(root_, path);
  std::array<char, kElfHead> head{};
  if (!fd.ok() || ::pread(fd->get(), head.data(), head.size(), 0) != ssize_t{kElfHead})
    return std::nullopt;
  return elf_machine_of(std::string_view(head.data(), head.size()));
}

std::vector<std::string> DirectoryFiles::list(std::string_view path) const {
  return root_.list(path, kMostDirectoryNames).value_or({});
}

}  // namespace gantry::image
