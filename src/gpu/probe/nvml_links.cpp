// SPDX-License-Identifier: Apache-2.0
// NVLinks of one GPU.
#include "gpu/probe/nvml_gpu_internal.hpp"

namespace gantry::probe {

NvLinks read_nvlinks(Asking& asking) {
  NvLinks found;
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t active = NVML_FEATURE_DISABLED;
    if (!GANTRY_ASK(asking, nvmlDeviceGetNvLinkState, asking.device(), link, &active)) {
      // Not supported for one link only: it is not wired. Anything else: there are no more.
      if (asking.last() == NVML_ERROR_NOT_SUPPORTED && link > 0) continue;
      break;
    }
    if (active != NVML_FEATURE_ENABLED) continue;
    nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    if (GANTRY_ASK(asking, nvmlDeviceGetNvLinkRemoteDeviceType, asking.device(), link, &type) &&
        type == NVML_NVLINK_DEVICE_TYPE_SWITCH) {
      ++found.to_switch;
      continue;
    }
    nvmlPciInfo_t remote{};
    if (!GANTRY_ASK(asking, nvmlDeviceGetNvLinkRemotePciInfo_v2, asking.device(), link, &remote))
      continue;
    const auto address = model::PciAddress::parse(text_of(remote.busId));
    if (address) found.to_devices.push_back(*address);
  }
  return found;
}

}  // namespace gantry::probe
