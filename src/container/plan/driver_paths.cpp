// SPDX-License-Identifier: Apache-2.0
#include "container/plan/driver_paths.hpp"

#include "base/core/text.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gantry::plan {
namespace {

using model::Capability;
using model::mask_of;

constexpr std::array kCapabilityOrder{Capability::Compute, Capability::Utility, Capability::Video,
                                      Capability::Graphics, Capability::Ngx};
// The subdirectories of a library directory that programs open by name.
constexpr std::array<std::string_view, 2> kSubdirectories{"vdpau", "gbm"};

// Names that programs open, for which not every driver package has a link.
struct RequiredName {
  std::string_view library;  // the start of its file name
  std::string_view name;
};
constexpr std::array kRequiredNames{
    RequiredName{"libcuda.so.", "libcuda.so"},
    RequiredName{"libGLX_nvidia.so.", "libGLX_indirect.so.0"},  // GLX without a vendor's screen
    RequiredName{"libnvidia-opticalflow.so.", "libnvidia-opticalflow.so"},
};

// "vdpau" for /usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.1; "" for most libraries.
std::string_view subdirectory_of(std::string_view path) {
  const auto directory = base_name(parent_directory(path));
  const auto* found = std::find(kSubdirectories.begin(), kSubdirectories.end(), directory);
  return found == kSubdirectories.end() ? std::string_view() : *found;
}

// A name from an untrusted file must not lead out of the directory.
bool is_safe(std::string_view name) {
  if (name.empty() || name.starts_with('/')) return false;
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return name != "." && name != "..";
  const auto directory = name.substr(0, slash);
  const auto rest = name.substr(slash + 1);
  return rest.find('/') == std::string_view::npos && rest != "." && rest != ".." && !rest.empty() &&
         std::find(kSubdirectories.begin(), kSubdirectories.end(), directory) !=
             kSubdirectories.end();
}

struct ConfigLocation {
  std::string_view part;    // of the path on the host, with any prefix
  std::string_view parent;  // in the container
};
constexpr std::array kConfigLocations{
    ConfigLocation{"/OpenCL/", "/etc"},      ConfigLocation{"/vulkan/", "/etc"},
    ConfigLocation{"/glvnd/", "/usr/share"}, ConfigLocation{"/egl/", "/usr/share"},
    ConfigLocation{"/X11/", "/usr/share"},   ConfigLocation{"/nvidia/nvoptix.bin", "/usr/share"},
};

}  // namespace

std::string config_path_in_container(const model::DriverFile& file) {
  const std::string_view path = file.links.empty() ? file.path : file.links.front();
  for (const auto& [part, parent] : kConfigLocations) {
    const auto at = path.rfind(part);
    if (at != std::string_view::npos) return fmt::format("{}{}", parent, path.substr(at));
  }
  return std::string(path);
}

std::vector<std::string> loader_directories() {
  std::vector<std::string> directories;
  for (const auto* layout : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"}) {
    for (const auto* below : {"glibc-hwcaps/x86-64-v2", "tls"}) {
      directories.push_back(fmt::format("{}/{}", layout, below));
    }
  }
  return directories;
}

std::vector<std::string> gbm_backends() {
  std::vector<std::string> paths;
  for (const auto* layout : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"})
    paths.push_back(fmt::format("{}/gbm/nvidia-drm_gbm.so", layout));
  return paths;
}

std::string library_set_name(model::CapabilityMask closed) {
  std::string name;
  for (const auto capability : kCapabilityOrder) {
    if ((closed & mask_of(capability)) == 0) continue;
    if (!name.empty()) name += '+';
    name += model::to_string(capability);
  }
  return name;
}

std::vector<LibrarySet> library_sets() {
  std::vector<LibrarySet> sets;
  for (unsigned bits = 1; bits < 1U << kCapabilityOrder.size(); ++bits) {
    std::vector<Capability> members;
    for (std::size_t i = 0; i < kCapabilityOrder.size(); ++i) {
      if ((bits >> i & 1U) != 0) members.push_back(kCapabilityOrder[i]);
    }
    auto closed = model::expand_capabilities(members);
    if ((closed & mask_of(Capability::Graphics)) != 0) closed |= mask_of(Capability::Display);
    auto name = library_set_name(closed);
    const auto same = [&](const LibrarySet& set) { return set.name == name; };
    if (std::none_of(sets.begin(), sets.end(), same)) sets.push_back({std::move(name), closed});
  }
  const auto size = [](const LibrarySet& set) {
    return std::count(set.name.begin(), set.name.end(), '+');
  };
  std::stable_sort(sets.begin(), sets.end(),
                   [&](const LibrarySet& a, const LibrarySet& b) { return size(a) < size(b); });
  return sets;
}

std::string program_name(const model::DriverFile& program) {
  const auto& known = program.links.empty() ? program.path : program.links.front();
  return std::string(base_name(known));
}

std::vector<std::string> names_in_directory(const model::DriverFile& library) {
  const std::string file(base_name(library.path));
  std::vector<std::string> names{file};
  const auto add = [&](std::string name) {
    if (is_safe(name) && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  };
  const auto below = subdirectory_of(library.path);
  if (!below.empty()) add(fmt::format("{}/{}", below, file));
  if (!library.soname.empty()) {
    add(library.soname);
    if (!below.empty()) add(fmt::format("{}/{}", below, library.soname));
  }
  for (const auto& link : library.links) {
    add(link);
    if (!below.empty() && link.find('/') == std::string::npos)
      add(fmt::format("{}/{}", below, link));
  }
  for (const auto& required : kRequiredNames) {
    if (file.starts_with(required.library)) add(std::string(required.name));
  }
  return names;
}

}  // namespace gantry::plan
