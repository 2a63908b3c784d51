// SPDX-License-Identifier: Apache-2.0
#include "node/labels/vgpu.hpp"

#include "vm/pci/vgpu_capability.hpp"

#include <fmt/format.h>

namespace gantry::labels {
namespace {

constexpr std::size_t kConfigLimit = 4096;

}  // namespace

std::optional<VgpuHost> read_vgpu(const sys::Host& host) {
  constexpr std::string_view kDevices = "/sys/bus/pci/devices";
  const auto names = host.list(kDevices);
  if (!names.ok()) return std::nullopt;
  for (const auto& name : *names) {
    const auto directory = fmt::format("{}/{}", kDevices, name);
    if (host.read_value(directory + "/vendor") != "0x10de") continue;
    const auto bytes = host.read(directory + "/config", kConfigLimit);
    if (!bytes.ok()) continue;
    if (const auto facts = pci::parse_vgpu_capability(*bytes))
      return VgpuHost{facts->host_driver_version, facts->host_driver_branch};
  }
  return std::nullopt;
}

std::string read_machine_type(const sys::Host& host, std::string_view path) {
  return host.read_value(path).value_or("");
}

}  // namespace gantry::labels
