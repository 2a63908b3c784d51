// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/root.hpp"

#include "base/core/text.hpp"
#include "gpu/driver/capability_table.hpp"
#include "gpu/driver/directories.hpp"
#include "gpu/driver/file_names.hpp"
#include "gpu/driver/library_search_internal.hpp"
#include "gpu/procfs/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::driver {
namespace {

std::string loaded_version(const sys::Host& host) {
  if (const auto file = procfs::read_version(host); file.ok()) return file->version;
  return host.read_value("/sys/module/nvidia/version").value_or("");
}

bool has_version(const LibrarySearch& search, std::string_view version) {
  return std::any_of(search.versioned_libraries().begin(), search.versioned_libraries().end(),
                     [&](const VersionedLibrary& a) { return a.version == version; });
}

// Chooses the kernel's version if its libraries exist, else the version that the loader would
// choose, else the first.
std::string choose_version(const LibrarySearch& search, const std::string& kernel_version) {
  if (!kernel_version.empty() && has_version(search, kernel_version)) return kernel_version;
  if (has_version(search, search.loader_version())) return search.loader_version();
  return search.versioned_libraries().empty() ? "" : search.versioned_libraries().front().version;
}

const VersionedLibrary* choose_versioned_library(const LibrarySearch& search,
                                                 std::string_view version) {
  const VersionedLibrary* chosen = nullptr;
  for (const auto& anchor : search.versioned_libraries()) {
    if (anchor.version != version) continue;
    if (anchor.is_libcuda) return &anchor;
    if (chosen == nullptr) chosen = &anchor;
  }
  return chosen;
}

bool holds_version(const LibraryDirectory& directory, std::string_view version) {
  const auto suffix = fmt::format(".so.{}", version);
  return std::any_of(directory.names.begin(), directory.names.end(),
                     [&](const std::string& name) { return name.ends_with(suffix); });
}

// Finds every other driver version among the libraries, with its directory.
void find_others(const LibrarySearch& search, DriverRoot& root) {
  for (const auto& directory : search.directories()) {
    for (const auto& name : directory.names) {
      const auto parsed = parse_library_name(name);
      if (!parsed || !is_driver_version(parsed->version) || parsed->version == root.library_version)
        continue;
      const auto* row = library_row(parsed->stem);
      if (row == nullptr || row->rule != NameRule::DriverVersion) continue;
      OtherDriver other{std::string(parsed->version), directory.path};
      if (std::find(root.others.begin(), root.others.end(), other) == root.others.end()) {
        root.others.push_back(std::move(other));
      }
    }
  }
}

void take_directories(const LibrarySearch& search, DriverRoot& root) {
  for (const auto& directory : search.directories()) {
    if (!holds_version(directory, root.library_version)) continue;
    if (search.root_of(directory.path) == root.root) {
      root.directories.push_back(directory);
    } else {
      root.notes.push_back(fmt::format("driver {} is also in {}; Gantry uses the files of {}",
                                       root.library_version, directory.path,
                                       root.root == "/" ? root.library_directory : root.root));
    }
  }
}

DriverRoot chosen_from(const LibrarySearch& search, const std::string& kernel_version) {
  DriverRoot root{.kernel_version = kernel_version, .notes = search.notes()};
  root.library_version = choose_version(search, kernel_version);
  if (const auto* anchor = choose_versioned_library(search, root.library_version);
      anchor != nullptr) {
    root.library_directory = anchor->real_directory;
    root.root = search.root_of(search.directories()[anchor->directory].path);
    take_directories(search, root);
  }
  find_others(search, root);
  return root;
}

// The root of a driver container is treated like a machine: absolute links inside it stay inside.
DriverRoot chosen_in_chroot(const sys::Host& host, std::string_view place,
                            const std::string& kernel_version) {
  const auto resolved = host.resolve(place);
  if (!resolved.ok() || *resolved == "/") return {};
  const auto inner = sys::Host::at(host.outside(*resolved));
  if (!inner.ok()) return {};
  LibrarySearch search(*inner);
  search.add_standard_directories();
  search.finish();
  auto root = chosen_from(search, kernel_version);
  root.root = *resolved;
  root.is_chroot = true;
  const auto outside = [&](std::string& path) {
    path = path == "/" ? *resolved : *resolved + path;
  };
  if (root.found()) outside(root.library_directory);
  for (auto& directory : root.directories) outside(directory.path);
  for (auto& other : root.others) outside(other.directory);
  return root;
}

DriverRoot chosen_in_directories(const sys::Host& host, const std::string& kernel_version,
                                 const std::vector<std::string>& directories) {
  LibrarySearch search(host);
  for (const auto& directory : directories) search.add_named_directory(directory);
  return chosen_from(search, kernel_version);
}

void add_version_notes(DriverRoot& root) {
  if (!root.kernel_version.empty() && root.library_version != root.kernel_version) {
    root.notes.push_back(fmt::format(
        "the kernel module is {} but the libraries in {} are {}: reload the module or reboot",
        root.kernel_version, root.library_directory, root.library_version));
  }
  for (const auto& other : root.others) {
    root.notes.push_back(fmt::format("files of driver {} are in {}; Gantry does not use them",
                                     other.version, other.directory));
  }
}

void add_notes(const sys::Host& host, DriverRoot& root) {
  if (host.exists(kWslDirectory)) {
    root.notes.push_back(
        fmt::format("WSL: the driver's libraries come from Windows and are in {}", kWslDirectory));
  }
  if (!root.found()) {
    root.notes.emplace_back(
        "no libcuda or libnvidia-ml with a driver's version in the standard directories, "
        "ld.so.cache, "
        "/usr/local/nvidia, /home/kubernetes/bin/nvidia, /opt/nvidia, /run/opengl-driver or "
        "/run/nvidia/driver: "
        "install the driver's libraries");
    return;
  }
  add_version_notes(root);
}

DriverRoot find_at_location(const sys::Host& host, const std::string& kernel_version,
                            const DriverLocation& named) {
  auto root = named.libraries.empty()
                  ? chosen_in_chroot(host, named.root, kernel_version)
                  : chosen_in_directories(host, kernel_version, named.libraries);
  root.kernel_version = kernel_version;
  if (root.found()) {
    add_version_notes(root);
  } else {
    root.notes.push_back(fmt::format(
        "no libcuda or libnvidia-ml with a driver's version in {}, the directory that was "
        "given",
        named.libraries.empty() ? named.root
                                : fmt::format("{}", fmt::join(named.libraries, ", "))));
  }
  return root;
}

}  // namespace

DriverRoot find_root(const sys::Host& host, std::optional<std::string> kernel_version,
                     std::string_view ld_cache, const DriverLocation& named) {
  const auto version = kernel_version ? *std::move(kernel_version) : loaded_version(host);
  if (!named.root.empty() || !named.libraries.empty())
    return find_at_location(host, version, named);
  LibrarySearch search(host);
  search.add_standard_directories();
  search.add_self_contained_roots();
  search.finish(ld_cache);
  auto root = chosen_from(search, version);
  if (!root.found() || root.library_version != version) {
    auto inner = chosen_in_chroot(host, kDriverContainerRoot, version);
    const bool better = inner.found() && (!root.found() || inner.library_version == version);
    if (better) {
      if (root.found()) inner.others.push_back({root.library_version, root.library_directory});
      root = std::move(inner);
    }
  }
  add_notes(host, root);
  return root;
}

}  // namespace gantry::driver
