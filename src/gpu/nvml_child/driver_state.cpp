// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_child/driver_state_internal.hpp"
#include "gpu/probe/kernel_view.hpp"

#include <fmt/format.h>

namespace gantry::nvml_child {
namespace {

constexpr std::string_view kCapabilities = "/proc/driver/nvidia/capabilities";

void add_instances(const sys::Host& host, const std::string& gpu, std::vector<std::string>& out) {
  const auto directory = fmt::format("{}/{}/mig", kCapabilities, gpu);
  const auto names = host.list(directory);
  if (!names.ok()) return;
  for (const auto& gi : *names) {
    if (!gi.starts_with("gi")) continue;
    out.push_back(fmt::format("{}/{}", gpu, gi));
    const auto inside = host.list(fmt::format("{}/{}", directory, gi));
    if (!inside.ok()) continue;
    for (const auto& ci : *inside) {
      if (ci.starts_with("ci")) out.push_back(fmt::format("{}/{}/{}", gpu, gi, ci));
    }
  }
}

}  // namespace

DriverState read_driver_state(const sys::Host& host) {
  DriverState facts;
  const auto module = probe::read_driver_module(host);
  if (!module.loaded) {
    facts.why_not = module.why_not;
    return facts;
  }
  facts.version = module.version;
  facts.gpus = host.list("/proc/driver/nvidia/gpus").value_or({});
  return facts;
}

std::vector<std::string> list_mig_instances(const sys::Host& host) {
  std::vector<std::string> instances;
  for (const auto& name : host.list(kCapabilities).value_or({})) {
    if (name.starts_with("gpu")) add_instances(host, name, instances);
  }
  return instances;
}

}  // namespace gantry::nvml_child
