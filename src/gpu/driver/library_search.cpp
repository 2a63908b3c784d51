// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "gpu/driver/capability_table.hpp"
#include "gpu/driver/directories.hpp"
#include "gpu/driver/file_names.hpp"
#include "gpu/driver/files_internal.hpp"
#include "gpu/driver/library_search_internal.hpp"
#include "gpu/loader/elf.hpp"
#include "gpu/loader/ld_cache.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
// Limits the search in a hostile tree whose links lead from directory to directory.
constexpr std::size_t kMaxDirectories = 128;
constexpr std::size_t kMaxVersionedLibraries = 256;

// Whether to keep a name of a directory with thousands of files: libraries of the table in any
// version, and any library with a driver's version.
bool may_be_drivers(std::string_view name) {
  const auto parsed = parse_library_name(name);
  if (!parsed) return false;
  return is_driver_version(parsed->version) || library_row(parsed->stem) != nullptr;
}

bool is_subdirectory_of_interest(std::string_view name) {
  return name == "vdpau" || name == "tls" || name == "gbm";
}

bool is_32bit_library(const sys::Host& host, const std::string& path) {
  const auto fd = host.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd.ok()) return false;
  const auto elf = loader::Elf::open(fd->get());
  return elf.ok() && !elf->is_64bit();
}

}  // namespace

void LibrarySearch::add(std::string_view path, std::string_view why) {
  if (asked_.contains(path) || directories_.size() >= kMaxDirectories) return;
  auto& index = asked_.emplace(path, kNone).first->second;
  auto resolved = host_.resolve(path);
  if (!resolved.ok()) return;
  if (const auto known = asked_.find(*resolved); known != asked_.end() && known->second != kNone) {
    index = known->second;
    return;
  }
  auto names = host_.list(*resolved);
  if (!names.ok()) return;
  std::erase_if(*names, [](const std::string& name) {
    return !may_be_drivers(name) && !is_subdirectory_of_interest(name);
  });
  index = directories_.size();
  asked_[*resolved] = index;
  directories_.push_back(
      {.path = *resolved, .why = std::string(why), .names = *std::move(names), .cached_names = {}});
  find_versioned_libraries(directories_.size() - 1);
}

void LibrarySearch::add_numbered(std::string_view parent) {
  auto names = host_.list(parent);
  if (!names.ok()) return;
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    const std::string_view text(*name);
    if (text.starts_with("nvidia-") && parse_u64(text.substr(7))) {
      add(join_path(parent, text), "directory of one driver branch");
    }
  }
}

void LibrarySearch::add_standard_directories() {
  for (const auto directory : kStandardLibraryDirectories) add(directory, "standard directory");
  add_numbered("/usr/lib");
  add(fmt::format("{}/lib", kNixDirectory), "NixOS");
  for (const auto directory : k32BitLibraryDirectories)
    add(directory, "directory of 32-bit libraries");
  add_numbered("/usr/lib32");
}

void LibrarySearch::add_self_contained_roots() {
  for (const auto root : kSelfContainedRoots) {
    auto resolved = host_.resolve(root);
    if (!resolved.ok()) continue;
    for (const auto libraries : kSelfContainedLibraries) {
      add(join_path(*resolved, libraries), "the driver's own directory");
    }
    add(join_path(*resolved, "lib32"), "directory of 32-bit libraries");
    roots_.push_back(*std::move(resolved));
  }
}

void LibrarySearch::finish(std::string_view ld_cache) {
  read_cache(ld_cache);
  for (std::size_t i = 0; i < directories_.size(); ++i) follow_links(i);
}

void LibrarySearch::read_cache(std::string_view path) {
  const auto bytes = host_.read(path);
  if (!bytes.ok()) {
    if (bytes.error().code() != Errc::NotFound) notes_.push_back(bytes.error().text());
    return;
  }
  const auto cache = loader::parse_ld_cache(*bytes);
  if (!cache.ok()) {
    notes_.push_back(cache.error().text());
    return;
  }
  for (const auto& entry : cache->entries) {
    if (!may_be_drivers(entry.name) || !entry.path.starts_with('/')) continue;
    const auto directory = parent_directory(entry.path);
    add(directory, "in ld.so.cache");
    if (entry.is_64bit()) record_loader_choice(entry.name, entry.path);
    const auto found = asked_.find(directory);
    if (found == asked_.end() || found->second == kNone) continue;
    directories_[found->second].cached_names.push_back(entry.name);
  }
  for (auto& directory : directories_)
    std::sort(directory.cached_names.begin(), directory.cached_names.end());
}

void LibrarySearch::record_loader_choice(std::string_view name, std::string_view path) {
  if (!loader_version_.empty() || (name != "libcuda.so.1" && name != "libnvidia-ml.so.1")) return;
  const auto real = host_.resolve(path);
  if (!real.ok()) return;
  const auto parsed = parse_library_name(base_name(*real));
  if (parsed && is_driver_version(parsed->version)) loader_version_ = std::string(parsed->version);
}

// /usr/lib/libcuda.so.1 -> /usr/local/nvidia/lib64/libcuda.so.580.159.04: also search that
// directory.
void LibrarySearch::follow_links(std::size_t directory) {
  for (const std::string_view name : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
    const auto& here = directories_[directory];
    if (!std::binary_search(here.names.begin(), here.names.end(), name)) continue;
    const auto link = join_path(here.path, name);
    const auto real = host_.resolve(link);
    if (!real.ok() || parent_directory(*real) == here.path) continue;
    const auto parsed = parse_library_name(base_name(*real));
    if (parsed && is_driver_version(parsed->version))
      add(parent_directory(*real), fmt::format("{} points there", link));
  }
}

void LibrarySearch::find_versioned_libraries(std::size_t directory) {
  const auto& here = directories_[directory];
  for (const auto& name : here.names) {
    const auto parsed = parse_library_name(name);
    if (!parsed || !is_driver_version(parsed->version)) continue;
    const bool is_libcuda = parsed->stem == "libcuda";
    if (!is_libcuda && parsed->stem != "libnvidia-ml") continue;
    if (versioned_libraries_.size() >= kMaxVersionedLibraries) return;
    auto real = host_.resolve(join_path(here.path, name));
    if (!real.ok() || is_32bit_library(host_, *real)) continue;
    versioned_libraries_.push_back({.directory = directory,
                                    .version = std::string(parsed->version),
                                    .real_directory = std::string(parent_directory(*real)),
                                    .is_libcuda = is_libcuda});
  }
}

std::string LibrarySearch::root_of(std::string_view path) const {
  for (const auto& root : roots_) {
    if (is_below(path, root)) return root;
  }
  return "/";
}

}  // namespace gantry::driver
