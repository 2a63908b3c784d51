// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/shim/volumes.hpp"

#include "base/core/text.hpp"
#include "container/plan/driver_paths.hpp"
#include "container/rootfs/follow_links.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::runtime {
namespace {

bool is_in(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  const auto rest = path.substr(directory.size());
  return rest.empty() || rest.starts_with('/') || directory == "/";
}

std::string_view path_below(std::string_view path, std::string_view directory) {
  return directory == "/" ? path : path.substr(directory.size());
}

bool is_directory(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

bool has_option(const oci::Mount& mount, std::string_view option) {
  return std::find(mount.options.begin(), mount.options.end(), option) != mount.options.end();
}

// proc, tmpfs and similar have no directory of the host as their source.
bool is_volume(const oci::Mount& mount) {
  return contains(mount.source, "/") || has_option(mount, "bind") || has_option(mount, "rbind");
}

bool is_read_only(const rootfs::Root& root) {
  struct statvfs found {};
  return ::fstatvfs(root.fd(), &found) == 0 && (found.f_flag & ST_RDONLY) != 0;
}

// A GPU works without single files and without the driver's programs.
bool is_optional(const model::MountEdit& mount) {
  return !is_directory(mount.host_path) || mount.container_path == plan::kContainerProgramDirectory;
}

bool mounts_elsewhere(const std::vector<model::MountEdit>& kept, const model::MountEdit& mount) {
  return std::any_of(kept.begin(), kept.end(), [&](const model::MountEdit& other) {
    return other.host_path == mount.host_path;
  });
}

}  // namespace

Volumes::Volumes(const rootfs::Root& root, const std::vector<oci::Mount>& mounts,
                 std::string_view bundle)
    : root_(root), read_only_root_(is_read_only(root)) {
  for (const auto& mount : mounts) {
    if (!is_volume(mount)) {
      other_mounts_.push_back(real_path(mount.destination));
      continue;
    }
    const auto source =
        mount.source.starts_with('/') ? mount.source : fmt::format("{}/{}", bundle, mount.source);
    auto content = rootfs::Root::at(source);
    volumes_.push_back(
        {.named = mount.destination,
         .real = real_path(mount.destination),
         .source = source,
         .shared = has_option(mount, "shared") || has_option(mount, "rshared"),
         .content = content.ok() ? std::optional(*std::move(content)) : std::nullopt});
  }
}

// The volume that was mounted last hides the others.
const Volumes::Volume* Volumes::volume_of(std::string_view real) const {
  const auto found = std::find_if(volumes_.rbegin(), volumes_.rend(),
                                  [&](const Volume& volume) { return is_in(real, volume.real); });
  return found == volumes_.rend() ? nullptr : &*found;
}

Result<sys::FileInfo> Volumes::link_info(const std::string& real) const {
  const auto* volume = volume_of(real);
  if (volume == nullptr) return root_.link_info(real);
  if (volume->content) return volume->content->link_info(path_below(real, volume->real));
  return Error(Errc::NotFound, fmt::format("{} is not a directory", volume->named));
}

std::string Volumes::real_path(std::string_view path) const {
  const auto link_at = [this](const std::string& at) -> std::optional<std::string> {
    const auto* volume = volume_of(at);
    if (volume != nullptr && !volume->content) return std::nullopt;
    const auto target =
        volume == nullptr ? root_.link(at) : volume->content->link(path_below(at, volume->real));
    return target.ok() ? std::optional(*target) : std::nullopt;
  };
  return rootfs::follow_links(path, link_at).value_or(std::string(path));
}

std::string Volumes::over(std::string_view path) const {
  if (volumes_.empty()) return {};
  const auto* volume = volume_of(real_path(path));
  return volume == nullptr ? std::string() : volume->named;
}

// A root that cannot be written has a place for a mount only where the image has one, or where the
// runtime mounts a file system of its own first.
Volumes::Refusal Volumes::refusal_by_root(const model::MountEdit& mount,
                                          const std::string& real) const {
  if (!read_only_root_) return {};
  const bool in_memory = std::any_of(other_mounts_.begin(), other_mounts_.end(),
                                     [&](const std::string& other) { return is_in(real, other); });
  if (in_memory || root_.link_info(real).ok()) return {};
  return {.why = fmt::format("{} does not exist in the container's root, which cannot be written",
                             mount.container_path),
          .image_lacks = real};
}

Volumes::Refusal Volumes::refusal(const model::MountEdit& mount) const {
  const auto real = real_path(mount.container_path);
  const auto* volume = volume_of(real);
  if (volume == nullptr) return refusal_by_root(mount, real);
  const auto where = fmt::format("{} is in the volume at {}", mount.container_path, volume->named);
  if (volume->shared) return {.why = where + ", which would show the mount to the host"};
  if (real == volume->real) return {};  // in place of the volume
  const auto there = link_info(real);
  if (!there.ok()) {
    return {.why = where + ", where nothing may be created",
            .missing = fmt::format("{}{}", volume->source, path_below(real, volume->real))};
  }
  const bool is_same_kind =
      (there->kind == sys::FileKind::Directory) == is_directory(mount.host_path);
  if (is_same_kind) return {};
  return {.why = where + ", which has something else there"};
}

// The command that creates the mount points of the directories.
std::string Volumes::remedy(const std::vector<RefusedMount>& directories) {
  std::string missing;
  for (const auto& one : directories) {
    if (!one.refusal.image_lacks.empty()) {
      return fmt::format("create {} in the image", one.refusal.image_lacks);
    }
    const auto& path = one.refusal.missing;
    if (!path.empty() && !contains(path, "'")) missing += fmt::format(" '{}'", path);
  }
  if (missing.empty()) return "mount the volume elsewhere";
  return fmt::format("mount the volume elsewhere, or run `mkdir -p{}`", missing);
}

// Looks at each path once, because anyone who can write to a volume may exchange its files.
Status Volumes::remove_impossible_mounts(std::vector<model::MountEdit>& mounts,
                                         VolumeNotes& remarks) const {
  if (volumes_.empty() && !read_only_root_) return {};
  std::vector<model::MountEdit> kept;
  std::vector<RefusedMount> removed;
  std::vector<std::string> without_place;
  for (auto& mount : mounts) {
    auto refused = refusal(mount);
    if (refused.why.empty()) {
      kept.push_back(std::move(mount));
      continue;
    }
    if (refused.image_lacks.empty()) {
      remarks.notes.push_back(fmt::format("{}: left out, {}", refused.why, mount.why));
    } else {
      without_place.push_back(mount.container_path);
    }
    removed.push_back({std::move(mount), std::move(refused)});
  }
  mounts = std::move(kept);
  if (!without_place.empty()) {
    remarks.warnings.push_back(
        fmt::format("the container's root cannot be written and has no mount points for {}: left "
                    "out; create them in the image",
                    fmt::join(without_place, ", ")));
  }
  std::erase_if(removed, [&](const RefusedMount& one) {
    return is_optional(one.mount) || mounts_elsewhere(mounts, one.mount);
  });
  if (removed.empty()) return {};
  const auto& first = removed.front();
  return Error(Errc::Denied, fmt::format("{}, and a container cannot use a GPU without {}",
                                         first.refusal.why, first.mount.why))
      .advise(remedy(removed));
}

}  // namespace gantry::runtime
