// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/driver_services.hpp"

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

constexpr std::array<std::string_view, 8> kServices{
    "nvidia-dcgm.service",          "dcgm.service",
    "nvidia-fabricmanager.service", "nvidia-imex.service",
    "nvidia-gridd.service",         "nvidia-topologyd.service",
    "nvidia-powerd.service",        "nvidia-persistenced.service"};

// As the kernel cuts them, after 15 characters.
constexpr std::array<std::string_view, 8> kServiceProcesses{
    "nvidia-persiste", "nv-fabricmanage", "nvidia-topology", "nvidia-gridd",
    "nvidia-imex",     "nvidia-powerd",   "nvlsm",           "gantry-nvml"};

}  // namespace

std::span<const std::string_view> driver_services() {
  return kServices;
}

bool is_service_process(const vfio::Holder& holder) {
  if (!holder.pod.empty()) return false;
  const bool unit = std::find(kServices.begin(), kServices.end(), holder.unit) != kServices.end();
  return unit || std::find(kServiceProcesses.begin(), kServiceProcesses.end(), holder.name) !=
                     kServiceProcesses.end();
}

}  // namespace gantry::preflight
