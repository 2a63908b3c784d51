// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/compat.hpp"

#include "base/core/text.hpp"
#include "gpu/loader/elf.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::rootfs {
namespace {

#if defined(__aarch64__)
constexpr std::uint16_t kMachine = loader::kMachineAarch64;
constexpr std::uint16_t kMachine32 = loader::kMachineArm;
#else
constexpr std::uint16_t kMachine = loader::kMachineAmd64;
constexpr std::uint16_t kMachine32 = loader::kMachineI386;
#endif

constexpr int kRead = O_RDONLY | O_NONBLOCK | O_NOCTTY;

std::string joined(std::string_view directory, std::string_view name) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
  return fmt::format("{}/{}", directory == "/" ? "" : directory, name);
}

Result<sys::UniqueFd> open_regular(const Root& root, const std::string& path, int flags) {
  // Checks the type before opening: opening a device of the image could have side effects.
  GANTRY_TRY(const auto info, (flags & O_NOFOLLOW) != 0 ? root.link_info(path) : root.info(path));
  if (info.kind != sys::FileKind::Regular) {
    return Error(Errc::Invalid, fmt::format("{} is not a regular file", path));
  }
  GANTRY_TRY(sys::UniqueFd fd, root.open(path, kRead | flags));
  GANTRY_TRY(const auto opened, sys::file_info(fd.get(), path));
  if (opened.kind != sys::FileKind::Regular) {
    return Error(Errc::Busy, fmt::format("{} was replaced while it was read", path));
  }
  return fd;
}

// Regular files such as libcuda.so.575.57.08.
std::vector<std::string> candidates(const Root& root, std::string_view directory,
                                    const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const auto& name : names) {
    if (!glob_match("libcuda.so.*.*", name)) continue;
    const auto info = root.link_info(joined(directory, name));
    if (info.ok() && info->kind == sys::FileKind::Regular) found.push_back(name);
  }
  return found;
}

Result<loader::CompatDecision> decide(const Root& root, const std::string& path,
                                      std::string_view version, const loader::HostVersions& host) {
  GANTRY_TRY(const sys::UniqueFd fd, open_regular(root, path, O_NOFOLLOW));
  GANTRY_TRY(const auto elf, loader::Elf::open(fd.get()));
  GANTRY_TRY(const auto note, loader::read_compat_note(elf));
  return loader::decide_compat(version, note, host);
}

// nullopt: the file is not a library for this machine.
std::optional<model::LibraryEdit> library_at(const Root& root, std::string_view directory,
                                             const std::string& file) {
  const auto fd = open_regular(root, joined(directory, file), 0);
  if (!fd.ok()) return std::nullopt;
  const auto elf = loader::Elf::open(fd->get());
  if (!elf.ok() || elf->type() != 3) return std::nullopt;
  const bool is_32bit = elf->machine() == kMachine32 && !elf->is_64bit();
  if (!is_32bit && (elf->machine() != kMachine || !elf->is_64bit())) return std::nullopt;
  auto name = elf->soname().value_or("");
  if (name.empty() || name.find('/') != std::string::npos) name = file;
  return model::LibraryEdit{.name = name, .path = joined(directory, file), .is_32bit = is_32bit};
}

}  // namespace

Result<std::vector<model::LibraryEdit>> list_libraries(const Root& root,
                                                       std::string_view directory) {
  GANTRY_TRY(const auto names, root.list(directory, 16384));
  std::vector<model::LibraryEdit> found;
  const auto add = [&](model::LibraryEdit library) {
    if (std::find(found.begin(), found.end(), library) == found.end()) {
      found.push_back(std::move(library));
    }
  };
  for (const auto& file : names) {
    if (!glob_match("lib*.so*", file)) continue;
    auto library = library_at(root, directory, file);
    if (!library) continue;
    if (file.ends_with(".so")) add({file, joined(directory, file), library->is_32bit});
    // By its SONAME if the directory has that name, else by its file name.
    if (library->name != file) {
      if (std::binary_search(names.begin(), names.end(), library->name)) continue;
    }
    add(std::move(*library));
  }
  return found;
}

CompatChoice choose_compat(const Root& root, const loader::HostVersions& host,
                           std::string_view directory) {
  CompatChoice choice{.directory = std::string(directory)};
  const auto names = root.list(directory);
  if (!names.ok()) {
    choice.why = fmt::format("the image has no {}", directory);
    return choice;
  }
  const auto found = candidates(root, directory, *names);
  if (found.size() != 1) {
    choice.why =
        fmt::format("{} has {} files libcuda.so.*.*, but must have one", directory, found.size());
    return choice;
  }
  const auto version =
      std::string_view(found.front()).substr(std::string_view("libcuda.so.").size());
  const auto decision = decide(root, joined(directory, found.front()), version, host);
  if (!decision.ok()) {
    choice.why = fmt::format("{} cannot be used: {}", joined(directory, found.front()),
                             decision.error().text());
    return choice;
  }
  choice.why = decision->why;
  if (!decision->use) return choice;
  auto libraries = list_libraries(root, directory);
  if (!libraries.ok()) {
    choice.why = libraries.error().text();
    return choice;
  }
  choice.use = true;
  choice.libraries = *std::move(libraries);
  return choice;
}

}  // namespace gantry::rootfs
