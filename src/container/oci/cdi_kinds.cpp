// SPDX-License-Identifier: Apache-2.0
// The CDI devices that an image may name. The user who starts a container may name every device of
// the machine; the author of the image may not.
#include "container/oci/device_list.hpp"
#include "container/oci/request_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::oci {
namespace {

// GPUs, and the other kinds of `gantry cdi generate --mode`.
constexpr std::array<std::string_view, 9> kNvidiaKinds{
    "nvidia.com/gpu",      "nvidia.com/gpu.coherent", "nvidia.com/gpu.noncoherent",
    "nvidia.com/gds",      "nvidia.com/gdrcopy",      "nvidia.com/mofed",
    "nvidia.com/nvswitch", "nvidia.com/imex-channel", "runtime.nvidia.com/gpu"};

// Every GPU, every capability: for programs that manage the machine.
constexpr std::string_view kManagement = "management.nvidia.com/";

// Why an image may not name the device; "" if it may.
std::string why_not(std::string_view kind, const Container& container,
                    const config::Settings& settings) {
  if (kind.starts_with(kManagement)) {
    return container.privileged ? std::string()
                                : "the environment may name management devices only for privileged "
                                  "containers";
  }
  if (among(kNvidiaKinds, kind) || kind == settings.runtime.cdi_default_kind ||
      among(settings.gantry.cdi_kinds, kind)) {
    return {};
  }
  return fmt::format(
      "the environment may not name devices of kind {}; name it when the container is started "
      "(--device), or add the kind to cdi-kinds under [gantry] in config.toml",
      kind);
}

}  // namespace

void drop_foreign_kinds(DeviceRequest& asked, const Container& container,
                        const config::Settings& settings, Decision& decision) {
  if (asked.source != model::RequestSource::Environment) return;
  std::erase_if(asked.devices, [&](const std::string& device) {
    if (!is_qualified(device) || among(asked.slots, device)) return false;
    const auto why = why_not(split_qualified_name(device).kind, container, settings);
    if (why.empty()) return false;
    decision.reasons.push_back(fmt::format("`{}` is left out: {}", device, why));
    decision.warnings.push_back(fmt::format("`{}` is not given: {}", device, why));
    return true;
  });
  if (asked.devices.empty()) asked.source = model::RequestSource::None;
}

}  // namespace gantry::oci
