// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "container/oci/device_list.hpp"
#include "container/oci/request_internal.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gantry::oci {
namespace {

using model::Capability;
using model::DeviceGroup;

constexpr std::string_view kCapabilities = "NVIDIA_DRIVER_CAPABILITIES";

Result<std::vector<Capability>> capability_words(std::string_view text) {
  std::vector<Capability> result;
  for (auto word : split(text, ',')) {
    word = trim(word);
    if (word.empty()) continue;
    const auto capability = model::parse_enum<Capability>(word);
    if (!capability) {
      return Error(Errc::Invalid,
                   fmt::format("`{}` is not a driver capability; capabilities are {} and all", word,
                               fmt::join(model::kEnumNames<Capability>, ", ")));
    }
    if (std::find(result.begin(), result.end(), *capability) == result.end()) {
      result.push_back(*capability);
    }
  }
  return result;
}

bool requests_all(std::string_view list) {
  const auto words = split(list, ',');
  return std::any_of(words.begin(), words.end(),
                     [](std::string_view word) { return trim(word) == "all"; });
}

Result<std::vector<Capability>> capabilities(const Container& container,
                                             const config::Settings& settings) {
  GANTRY_TRY(const auto supported, capability_words(settings.supported_driver_capabilities)
                                       .in("supported-driver-capabilities of config.toml"));
  const auto asked = trim(container.variable(kCapabilities).value_or(""));
  if (requests_all(asked) || (asked.empty() && is_legacy_image(container))) return supported;
  if (asked.empty()) return model::ContainerRequest().capabilities;
  GANTRY_TRY(const auto wanted, capability_words(asked).in(kCapabilities));
  for (const auto capability : wanted) {
    if (std::find(supported.begin(), supported.end(), capability) != supported.end()) continue;
    return Error(Errc::Invalid, fmt::format("unsupported capabilities found in '{}' (allowed '{}')",
                                            asked, settings.supported_driver_capabilities));
  }
  return wanted;
}

// Requests of the environment beyond GPUs: with a policy of grants they would bypass it.
bool uses_environment(const Container& container, const config::Settings& settings) {
  if (container.pod) return settings.gantry.kubernetes_environment == "any";
  switch (config::environment_policy(settings)) {
    case config::EnvironmentPolicy::Any: return true;
    case config::EnvironmentPolicy::Privileged: return container.privileged;
    case config::EnvironmentPolicy::Never: return false;
  }
  return false;
}

Status read_imex(const Container& container, const config::Settings& settings, bool trusted,
                 Decision& decision) {
  if (settings.features.ignore_imex_channel_requests) return {};
  std::vector<std::string> entries;
  if (settings.accept_volume_mounts) entries = imex_channels_from_mounts(container);
  if (entries.empty() && trusted) {
    const std::array lists{container.variable("NVIDIA_IMEX_CHANNELS").value_or("")};
    GANTRY_TRY(entries, parse_list(lists).in("NVIDIA_IMEX_CHANNELS"));
  }
  GANTRY_TRY(decision.request.imex_channels, parse_channels(entries));
  return {};
}

void read_groups(const Container& container, Decision& decision) {
  constexpr std::array<std::pair<std::string_view, DeviceGroup>, 4> kGroups{{
      {"NVIDIA_GDS", DeviceGroup::Gds},
      {"NVIDIA_GDRCOPY", DeviceGroup::Gdrcopy},
      {"NVIDIA_MOFED", DeviceGroup::Mofed},
      {"NVIDIA_NVSWITCH", DeviceGroup::Nvswitch},
  }};
  for (const auto& [name, group] : kGroups) {
    if (container.variable(name) != "enabled") continue;
    decision.asked.push_back(fmt::format("environment: {}=enabled", name));
    decision.request.groups.push_back(group);
  }
}

Status read_mig_control(const Container& container, Decision& decision) {
  const auto wanted = [&](std::string_view name) -> Result<bool> {
    const auto value = trim(container.variable(name).value_or(""));
    if (value.empty() || value == "void" || value == "none") return false;
    if (value != "all") {
      return Error(Errc::Invalid, fmt::format("{}={}: the only valid value is `all`", name, value));
    }
    if (!container.privileged) {
      return Error(Errc::Denied,
                   fmt::format("{} needs a privileged container, because changing MIG affects all "
                               "users of the GPU",
                               name));
    }
    decision.asked.push_back(fmt::format("environment: {}={}", name, value));
    return true;
  };
  GANTRY_TRY(decision.request.mig_config, wanted("NVIDIA_MIG_CONFIG_DEVICES"));
  GANTRY_TRY(decision.request.mig_monitor, wanted("NVIDIA_MIG_MONITOR_DEVICES"));
  return {};
}

}  // namespace

Result<std::vector<std::uint32_t>> parse_channels(const std::vector<std::string>& entries) {
  std::vector<std::uint32_t> channels;
  std::set<std::uint32_t> seen;
  for (const auto& entry : entries) {
    const auto number = parse_u64(entry);
    if (!number || *number > model::kMaxImexChannel) {
      return Error(Errc::Invalid, fmt::format("`{}` is not an IMEX channel; channels are 0 to {}",
                                              entry, model::kMaxImexChannel));
    }
    const auto channel = static_cast<std::uint32_t>(*number);
    if (seen.insert(channel).second) channels.push_back(channel);
  }
  return channels;
}

Status read_details(const Container& container, const config::Settings& settings,
                    Decision& decision) {
  const bool trusted = uses_environment(container, settings);
  GANTRY_TRY(decision.request.capabilities, capabilities(container, settings));
  GANTRY_TRY(decision.request.requirements, read_requirements(container, settings, decision));
  GANTRY_CHECK(read_imex(container, settings, trusted, decision));
  if (!trusted) return {};
  read_groups(container, decision);
  return read_mig_control(container, decision);
}

}  // namespace gantry::oci
