// SPDX-License-Identifier: Apache-2.0
// NVLinks of one GPU.
#include "gpu/nvml/gpu_internal.hpp"

namespace gantry::nvml {

NvLinks read_nvlinks(DeviceQuery& query) {
  NvLinks found;
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t active = NVML_FEATURE_DISABLED;
    if (!GANTRY_QUERY(query, nvmlDeviceGetNvLinkState, query.device(), link, &active)) {
      // "Not supported" for a single link means that it is not wired. Any other error means that
      // there are no more links.
      if (query.last() == NVML_ERROR_NOT_SUPPORTED && link > 0) continue;
      break;
    }
    if (active != NVML_FEATURE_ENABLED) continue;
    nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    if (GANTRY_QUERY(query, nvmlDeviceGetNvLinkRemoteDeviceType, query.device(), link, &type) &&
        type == NVML_NVLINK_DEVICE_TYPE_SWITCH) {
      ++found.to_switch;
      continue;
    }
    nvmlPciInfo_t remote{};
    if (!GANTRY_QUERY(query, nvmlDeviceGetNvLinkRemotePciInfo_v2, query.device(), link, &remote))
      continue;
    const auto address = model::PciAddress::parse(to_string(remote.busId));
    if (address) found.to_devices.push_back(*address);
  }
  return found;
}

}  // namespace gantry::nvml
