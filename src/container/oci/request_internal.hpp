// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/oci/request.hpp"

namespace gantry::oci {

constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kVolumeMounts = "/var/run/nvidia-container-devices";

// An image from before NVIDIA_REQUIRE_CUDA: it means all GPUs and all capabilities unless it says
// otherwise.
bool is_legacy_image(const Container& container);

// Who asked, and for what, before any policy.
struct DeviceRequest {
  model::RequestSource source = model::RequestSource::None;
  std::vector<std::string> devices;
  std::vector<std::string> words;  // for Decision::asked
  std::vector<std::string> slots;  // of those, the container's own by its grant
};

Result<DeviceRequest> request_from_annotations(const Container& container,
                                               const std::vector<std::string>& prefixes);
Result<DeviceRequest> request_from_mounts(const Container& container);
Result<DeviceRequest> request_from_environment(const Container& container,
                                               const config::Settings& settings);

// What an image may name by CDI: kinds of NVIDIA and those of config.toml. The rest is taken out of
// `asked`, with a word.
void drop_foreign_kinds(DeviceRequest& asked, const Container& container,
                        const config::Settings& settings, Decision& decision);

// Channels from volume mounts ("imex/7") or NVIDIA_IMEX_CHANNELS.
std::vector<std::string> imex_channels_from_mounts(const Container& container);
Result<std::vector<std::uint32_t>> parse_channels(const std::vector<std::string>& entries);

// Values of NVIDIA_REQUIRE_* and what an old image means by its CUDA_VERSION. Invalid when there
// are more than any image needs.
Result<std::vector<std::string>> read_requirements(const Container& container,
                                                   const config::Settings& settings,
                                                   Decision& decision);

// Of `asked` what the environment policy leaves, with its reason in `decision`.
void apply_policy(DeviceRequest& asked, const Container& container,
                  const config::Settings& settings, const RequestLookups& lookups,
                  Decision& decision);

// Capabilities, requirements, IMEX channels, device groups and MIG control, which go with devices.
Status read_details(const Container& container, const config::Settings& settings,
                    Decision& decision);

}  // namespace gantry::oci
