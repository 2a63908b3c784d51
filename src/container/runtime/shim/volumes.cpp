// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/shim/volumes.hpp"

#include "base/core/text.hpp"

#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::runtime {
namespace {

bool is_in(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  const auto rest = path.substr(directory.size());
  return rest.empty() || rest.starts_with('/') || directory == "/";
}

bool is_directory(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

}  // namespace

Volumes::Volumes(const rootfs::Root& root, const std::vector<oci::Mount>& mounts) : root_(root) {
  for (const auto& mount : mounts) {
    if (!contains(mount.source, "/")) continue;  // proc, tmpfs and similar
    volumes_.push_back({.named = mount.destination,
                        .real = root.real_path(mount.destination).value_or(mount.destination)});
  }
}

std::string Volumes::over(std::string_view path) const {
  if (volumes_.empty()) return {};
  const auto real = root_.real_path(path).value_or(std::string(path));
  const auto found = std::find_if(volumes_.begin(), volumes_.end(),
                                  [&](const Volume& v) { return is_in(real, v.real); });
  return found == volumes_.end() ? std::string() : found->named;
}

Status Volumes::remove_mounts_in_volumes(std::vector<model::MountEdit>& mounts,
                                         std::vector<std::string>& notes) const {
  std::vector<model::MountEdit> kept;
  for (auto& mount : mounts) {
    const auto volume = over(mount.container_path);
    // A path that is below the volume without links: the user who mounted the volume wants this.
    if (volume.empty() || is_in(mount.container_path, volume)) {
      kept.push_back(std::move(mount));
      continue;
    }
    const auto why = fmt::format("the image's links lead {} into the volume at {}",
                                 mount.container_path, volume);
    if (is_directory(mount.host_path)) {
      return Error(Errc::Denied,
                   why +
                       ", where mounting the driver's files would change files of the "
                       "host");
    }
    notes.push_back(fmt::format("{}: left out, {}", why, mount.why));
  }
  mounts = std::move(kept);
  return {};
}

}  // namespace gantry::runtime
