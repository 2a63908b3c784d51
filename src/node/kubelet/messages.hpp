// SPDX-License-Identifier: Apache-2.0
// The messages of the kubelet's device plugin API, v1beta1: the agent's half. The kubelet's half is
// in tests/support/kubelet_messages.hpp. Unknown fields are skipped.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kubelet {

using DeviceIds = std::vector<std::string>;

inline constexpr std::string_view kVersion = "v1beta1";
inline constexpr std::string_view kHealthy = "Healthy";  // any other text means unhealthy
inline constexpr std::string_view kRegister = "/v1beta1.Registration/Register";
inline constexpr std::string_view kOptions = "/v1beta1.DevicePlugin/GetDevicePluginOptions";
inline constexpr std::string_view kListAndWatch = "/v1beta1.DevicePlugin/ListAndWatch";
inline constexpr std::string_view kGetPreferredAllocation =
    "/v1beta1.DevicePlugin/GetPreferredAllocation";
inline constexpr std::string_view kAllocate = "/v1beta1.DevicePlugin/Allocate";
inline constexpr std::string_view kPreStartContainer = "/v1beta1.DevicePlugin/PreStartContainer";

struct PluginOptions {
  bool pre_start_required = false;
  bool preferred_allocation_available = false;
  bool operator==(const PluginOptions&) const = default;
};

struct RegisterRequest {
  std::string version = std::string(kVersion);
  std::string endpoint;  // file name in the kubelet's directory
  std::string resource;
  PluginOptions options;
  bool operator==(const RegisterRequest&) const = default;
};

// A device in the list for the kubelet.
struct ListedDevice {
  std::string id;
  bool healthy = true;
  std::optional<int> numa_node;  // nullopt: no preference, which is not the same as node 0
  bool operator==(const ListedDevice&) const = default;
};

struct PreferredRequest {  // for one container
  DeviceIds available;
  DeviceIds must_include;
  int size = 0;
  bool operator==(const PreferredRequest&) const = default;
};

std::string encode(const PluginOptions& options);
std::string encode(const RegisterRequest& request);
std::string encode_list(const std::vector<ListedDevice>& devices);
std::string encode_preferred_answer(const std::vector<DeviceIds>& containers);
std::string encode_allocate_answer(const std::vector<model::ContainerAllocateResponse>& containers);
// Encodes one ContainerAllocateResponse, as stored in the kubelet's checkpoint.
std::string encode(const model::ContainerAllocateResponse& answer);

Result<std::vector<PreferredRequest>> decode_preferred_request(std::string_view bytes);
Result<std::vector<DeviceIds>> decode_allocate_request(std::string_view bytes);
Result<DeviceIds> decode_pre_start(std::string_view bytes);
Result<model::ContainerAllocateResponse> decode_container_answer(std::string_view bytes);

}  // namespace gantry::kubelet
