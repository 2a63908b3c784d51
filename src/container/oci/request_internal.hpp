// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/oci/request.hpp"

#include <algorithm>

namespace gantry::oci {

constexpr std::string_view kGpuKind = "nvidia.com/gpu";
constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kVolumeMounts = "/var/run/nvidia-container-devices";

bool among(const auto& names, const auto& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// An image from before NVIDIA_REQUIRE_CUDA: requests all GPUs and all capabilities by default.
bool is_legacy_image(const Container& container);

// The requested devices and their source, before any policy.
struct DeviceRequest {
  model::RequestSource source = model::RequestSource::None;
  std::vector<std::string> devices;
  std::vector<std::string> words;  // for Decision::asked
  std::vector<std::string> slots;  // those that the container's grant contains
};

Result<DeviceRequest> request_from_annotations(const Container& container,
                                               const std::vector<std::string>& prefixes);
Result<DeviceRequest> request_from_mounts(const Container& container);
Result<DeviceRequest> request_from_environment(const Container& container,
                                               const config::Settings& settings);

// An image may name NVIDIA's CDI kinds and those of config.toml. Removes other kinds from `asked`
// with a warning.
void drop_foreign_kinds(DeviceRequest& asked, const Container& container,
                        const config::Settings& settings, Decision& decision);

// Channels from volume mounts ("imex/7") or NVIDIA_IMEX_CHANNELS.
std::vector<std::string> imex_channels_from_mounts(const Container& container);
Result<std::vector<std::uint32_t>> parse_channels(const std::vector<std::string>& entries);

// The values of NVIDIA_REQUIRE_*, and the requirement that CUDA_VERSION of an old image implies.
// Invalid if there are more than any image needs.
Result<std::vector<std::string>> read_requirements(const Container& container,
                                                   const config::Settings& settings,
                                                   Decision& decision);

// Removes from `asked` what the environment policy does not allow, with the reason in `decision`.
void apply_policy(DeviceRequest& asked, const Container& container,
                  const config::Settings& settings, const RequestLookups& lookups,
                  Decision& decision);

// Reads capabilities, requirements, IMEX channels, device groups and MIG control.
Status read_details(const Container& container, const config::Settings& settings,
                    Decision& decision);

}  // namespace gantry::oci
