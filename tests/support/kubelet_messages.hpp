// SPDX-License-Identifier: Apache-2.0
// The kubelet's half of the device plugin and pod resources APIs: what a kubelet sends, and how it
// reads the agent's messages. Only tests use it; the agent's half is in src/node/kubelet.
#pragma once

#include "node/kubelet/messages.hpp"
#include "node/kubelet/pod_resources.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::kubelet {

std::string encode_preferred_request(const std::vector<PreferredRequest>& containers);
std::string encode_allocate_request(const std::vector<DeviceIds>& containers);
std::string encode_pre_start(const DeviceIds& ids);
std::string encode_pod_resources(const std::vector<model::DeviceAllocation>& holders);
std::string encode_allocatable(const Allocatable& allocatable);

Result<PluginOptions> decode_options(std::string_view bytes);
Result<RegisterRequest> decode_register(std::string_view bytes);
Result<std::vector<ListedDevice>> decode_list(std::string_view bytes);
Result<std::vector<DeviceIds>> decode_preferred_answer(std::string_view bytes);
Result<std::vector<model::ContainerAllocateResponse>> decode_allocate_answer(
    std::string_view bytes);

}  // namespace gantry::kubelet
