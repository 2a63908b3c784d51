// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "container/oci/device_list.hpp"
#include "container/oci/request_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::oci {
namespace {

using model::RequestSource;

bool set(const Container& container, std::string_view name) {
  return container.variable(name).has_value();
}

// The part of a mount's destination below the directory of requests; "" for any other mount.
// Compares whole components: /var/run/nvidia-container-devicesX is another directory.
std::string_view mount_request(const Mount& mount) {
  std::string_view path = mount.destination;
  if (mount.source != "/dev/null" || !path.starts_with(kVolumeMounts)) return {};
  path.remove_prefix(kVolumeMounts.size());
  if (!path.starts_with('/')) return {};
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// cdi/VENDOR/CLASS/NAME or cdi/VENDOR/CLASS=NAME
std::string cdi_mount_name(std::string_view path) {
  if (is_qualified(path)) return std::string(path);
  const auto parts = split(path, '/');
  if (parts.size() != 3) return {};
  return fmt::format("{}/{}={}", parts[0], parts[1], parts[2]);
}

}  // namespace

bool is_legacy_image(const Container& container) {
  return set(container, "CUDA_VERSION") && !set(container, "NVIDIA_REQUIRE_CUDA");
}

Result<DeviceRequest> request_from_annotations(const Container& container,
                                               const std::vector<std::string>& prefixes) {
  auto notes = container.annotations;
  std::sort(notes.begin(), notes.end());
  DeviceRequest asked;
  std::vector<std::string_view> lists;
  for (const auto& [key, value] : notes) {
    const bool ours = std::any_of(
        prefixes.begin(), prefixes.end(),
        [&name = key](const auto& prefix) { return !prefix.empty() && name.starts_with(prefix); });
    if (!ours) continue;
    asked.words.push_back(fmt::format("annotation: {}={}", key, value));
    lists.push_back(value);
  }
  GANTRY_TRY(asked.devices, parse_device_list(lists).in("annotations"));
  for (const auto& device : asked.devices) {
    if (is_qualified(device)) continue;
    return Error(
        Errc::Invalid,
        fmt::format("`{}` in an annotation is not a CDI device name (vendor/class=name)", device));
  }
  if (!asked.devices.empty()) asked.source = RequestSource::Annotation;
  return asked;
}

Result<DeviceRequest> request_from_mounts(const Container& container) {
  DeviceRequest asked;
  std::vector<std::string> names;
  for (const auto& mount : container.mounts) {
    auto path = mount_request(mount);
    if (path.empty() || path.starts_with("imex/")) continue;
    asked.words.push_back("volume mount: " + mount.destination);
    if (path.starts_with("cdi/")) {
      names.push_back(cdi_mount_name(path.substr(4)));
    } else {
      names.emplace_back(path);
    }
  }
  const std::vector<std::string_view> lists(names.begin(), names.end());
  GANTRY_TRY(asked.devices, parse_device_list(lists).in("volume mounts"));
  if (!asked.devices.empty()) asked.source = RequestSource::VolumeMount;
  return asked;
}

Result<DeviceRequest> request_from_environment(const Container& container,
                                               const config::Settings& settings) {
  DeviceRequest asked;
  std::vector<std::string_view> lists;
  const auto take = [&](std::string_view name) {
    const auto value = container.variable(name);
    if (!value) return;
    lists.push_back(*value);
    asked.words.push_back(fmt::format("environment: {}={}", name, *value));
  };
  for (const auto name : split(settings.swarm_resource, ',')) take(trim(name));
  if (lists.empty()) take(kVisibleDevices);
  if (lists.empty() && is_legacy_image(container)) {
    lists.emplace_back("all");
    asked.words.emplace_back(
        "environment: CUDA_VERSION without NVIDIA_REQUIRE_CUDA, so an old image that requests "
        "`all`");
  }
  GANTRY_TRY(asked.devices, parse_device_list(lists).in(kVisibleDevices));
  if (!asked.devices.empty()) asked.source = RequestSource::Environment;
  return asked;
}

std::vector<std::string> imex_channels_from_mounts(const Container& container) {
  std::vector<std::string> channels;
  for (const auto& mount : container.mounts) {
    const auto path = mount_request(mount);
    if (path.starts_with("imex/")) channels.emplace_back(path.substr(5));
  }
  return channels;
}

}  // namespace gantry::oci
