// SPDX-License-Identifier: Apache-2.0
// Follows the loader's search for libcuda, and finds what is in its way.
#include "base/core/text.hpp"
#include "container/image/frameworks.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "node/why/container_steps_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;

constexpr std::size_t kLdCacheLimit = std::size_t{8} << 20;
constexpr std::string_view kLibrary = "libcuda.so.1";

// The directories in which any tool puts the driver's files.
constexpr std::array<std::string_view, 5> kDriverPlaces{
    "/usr/local/nvidia", "/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2",
    "/usr/lib64/glibc-hwcaps/x86-64-v2", "/usr/lib/x86_64-linux-gnu/tls", "/usr/lib64/tls"};

bool at_or_below(std::string_view path, std::string_view place) {
  return path == place ||
         (path.starts_with(place) && (place == "/" || path.substr(place.size()).starts_with('/')));
}

// In each directory, the loader first searches the subdirectories for newer processors (from glibc
// 2.33) or "tls" (before 2.37).
void add_with_subdirectories(std::vector<std::string>& path, const std::string& directory) {
  for (const auto* below : {"/glibc-hwcaps/x86-64-v4", "/glibc-hwcaps/x86-64-v3",
                            "/glibc-hwcaps/x86-64-v2", "/tls", ""})
    path.push_back(fmt::format("{}{}/{}", directory, below, kLibrary));
}

std::vector<std::string> candidates(const rootfs::Root& root, const ContainerView& inside) {
  std::vector<std::string> path;
  for (const auto& directory : library_path(inside)) add_with_subdirectories(path, directory);
  if (const auto bytes = root.read("/etc/ld.so.cache", kLdCacheLimit); bytes.ok()) {
    const auto cache = loader::parse_ld_cache(*bytes);
    if (cache.ok()) {
      for (const auto& entry : cache->entries) {
        if (entry.name == kLibrary && entry.is_64bit()) path.push_back(entry.path);
      }
    }
  }
  for (const auto* directory : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64",
                                "/usr/lib64", "/lib", "/usr/lib"})
    add_with_subdirectories(path, directory);
  return path;
}

std::string version_in(std::string_view real) {
  const auto at = real.rfind("/libcuda.so.");
  if (at == std::string_view::npos) return "";
  const auto version = real.substr(at + std::string_view("/libcuda.so.").size());
  return version == "1" ? "" : std::string(version);
}

// "580.159.04-1f2e3d4c5b6a7988" as a part of the path: a prepared driver directory.
bool is_prepared(std::string_view path) {
  constexpr std::size_t kDigest = 16;
  const auto parts = split(path, '/');
  return std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
    const auto dash = part.rfind('-');
    return dash != std::string_view::npos && dash > 0 && part.size() - dash - 1 == kDigest &&
           part.find_first_not_of("0123456789.") == dash &&
           part.find_first_not_of("0123456789abcdef", dash + 1) == std::string_view::npos;
  });
}

// A volume of a pod is recognized by the kubelet's directories; otherwise, every mount that is not
// a driver by its name.
bool is_volume(const rootfs::MountEntry& mount) {
  if (contains(mount.root, "/volumes/kubernetes.io~") || contains(mount.root, "/volume-subpaths/"))
    return true;
  return !is_prepared(mount.root) && !contains(mount.root, "nvidia") &&
         !contains(mount.root, "libcuda") && !contains(mount.root, "/libgantry-fence");
}

bool is_driver_place(std::string_view place) {
  return std::any_of(kDriverPlaces.begin(), kDriverPlaces.end(),
                     [&](std::string_view known) { return at_or_below(place, known); });
}

// A later mount on a parent directory hides a mount; both are then on the same mount.
bool hides(const rootfs::MountEntry& over, const rootfs::MountEntry& under) {
  return over.id != under.id && over.parent == under.parent && over.place != under.place &&
         at_or_below(under.place, over.place);
}

const rootfs::MountEntry* volume_in_the_way(const std::vector<rootfs::MountEntry>& mounts) {
  for (const auto& mount : mounts) {
    if (is_driver_place(mount.place) && is_volume(mount)) return &mount;
    if (is_driver_place(mount.place)) {
      const auto over = std::find_if(mounts.begin(), mounts.end(), [&](const auto& other) {
        return other.place != "/" && hides(other, mount);
      });
      if (over != mounts.end()) return &*over;
    }
  }
  return nullptr;
}

void foreign(Step& step, const FoundLibrary& found, const ContainerView& inside,
             MountSource giver) {
  const auto* whose = giver == MountSource::Volume ? "a volume" : "the image";
  step.verdict = StepStatus::Failed;
  step.cause =
      found.version.empty()
          ? fmt::format("the loader finds {} first: it is a driver library from {}, not the node's",
                        found.path, whose)
          : fmt::format(
                "the loader finds {} first: it is of driver {}, but the kernel has {}: it comes "
                "from {}",
                found.path, found.version, inside.driver_version, whose);
  const auto directories = library_path(inside);
  const bool named =
      std::any_of(directories.begin(), directories.end(),
                  [&](const std::string& directory) { return at_or_below(found.path, directory); });
  step.remedy =
      named ? "remove that directory from LD_LIBRARY_PATH, or remove libcuda from the directory"
            : "remove libcuda from the image: the node provides the right one";
}

}  // namespace

MountSource mount_source(const std::vector<rootfs::MountEntry>& mounts, std::string_view path) {
  const rootfs::MountEntry* on = nullptr;
  for (const auto& mount : mounts) {
    if (at_or_below(path, mount.place) && (on == nullptr || mount.place.size() >= on->place.size()))
      on = &mount;
  }
  if (on == nullptr || on->place == "/") return MountSource::Image;
  return is_volume(*on) ? MountSource::Volume : MountSource::Driver;
}

std::optional<FoundLibrary> find_libcuda(const rootfs::Root& root, const ContainerView& inside) {
  for (const auto& path : candidates(root, inside)) {
    const auto info = root.info(path);
    if (!info.ok() || info->kind != sys::FileKind::Regular) continue;
    const auto real = root.real_path(path).value_or(path);
    return FoundLibrary{path, real, version_in(real)};
  }
  return std::nullopt;
}

Step library_step(const std::optional<FoundLibrary>& found, const ContainerView& inside,
                  const std::vector<rootfs::MountEntry>& mounts) {
  Step step{.id = "container.libcuda", .what = "Its loader finds libcuda"};
  if (!found) {
    step.verdict = StepStatus::Failed;
    step.read = "no libcuda.so.1 where the loader looks";
    step.cause = "the driver's libraries are not in the container, or not where its loader looks";
    step.remedy = "on the node: gantry explain CONTAINER shows how they should get there";
    const auto capabilities =
        image::variable(inside.environment, "NVIDIA_DRIVER_CAPABILITIES").value_or("all");
    if (!contains(capabilities, "all") && !contains(capabilities, "compute")) {
      step.cause = fmt::format("NVIDIA_DRIVER_CAPABILITIES={} leaves libcuda out", capabilities);
      step.remedy = "set NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    }
    return step;
  }
  step.read =
      found->version.empty() ? found->path : fmt::format("{} ({})", found->path, found->version);
  if (contains(found->path, "/stubs/")) {
    step.verdict = StepStatus::Failed;
    step.cause = fmt::format("{} is CUDA's stub for linking: it cannot use a GPU", found->path);
    step.remedy = "remove the stubs directory from LD_LIBRARY_PATH";
    return step;
  }
  if (contains(found->path, "/compat/") || contains(found->real, "/compat/")) return step;
  const auto giver = mount_source(mounts, found->real);
  const bool fits = found->version.empty()
                        ? giver == MountSource::Driver
                        : inside.driver_version.empty() || found->version == inside.driver_version;
  if (!fits) foreign(step, *found, inside, giver);
  return step;
}

std::optional<Step> mounts_step(const std::optional<FoundLibrary>& found,
                                const std::vector<rootfs::MountEntry>& mounts) {
  const auto* volume = volume_in_the_way(mounts);
  if (volume == nullptr) return std::nullopt;
  // The driver is mounted in several places: a hidden one is not necessarily the one that is used.
  const bool reached = found && mount_source(mounts, found->real) == MountSource::Driver;
  return Step{.id = "container.mounts",
              .what = "Nothing is mounted over the driver",
              .verdict = reached ? StepStatus::Warning : StepStatus::Failed,
              .read = fmt::format("{} from {}", volume->place, volume->root),
              .cause = fmt::format("a volume of the pod is mounted at {}, where the driver's files "
                                   "belong, and hides them",
                                   volume->place),
              .remedy = fmt::format("mount that volume elsewhere, not at {}", volume->place)};
}

}  // namespace gantry::why
