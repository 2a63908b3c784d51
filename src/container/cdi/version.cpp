// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/version.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cdi {
namespace {

// The patch level of every version so far is 0.
constexpr Version kVersions[] = {{0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}, {0, 8}, {1, 0}, {1, 1}};

class VersionRequirementFinder {
 public:
  void add(bool needed, Version version, std::string_view what) {
    if (!needed) return;
    const bool known = std::any_of(list.begin(), list.end(), [&](const VersionRequirement& need) {
      return need.what == what;
    });
    if (!known) list.push_back({version, std::string(what)});
  }
  std::vector<VersionRequirement> list;
};

void add_edits(VersionRequirementFinder& found, const Edits& edits) {
  for (const auto& mount : edits.mounts) found.add(!mount.type.empty(), kV04, "a mount's type");
  for (const auto& node : edits.device_nodes) {
    found.add(!node.host_path.empty(), kV05, "a device node's hostPath");
  }
  found.add(edits.intel_rdt.has_value(), kV07, "intelRdt");
  found.add(!edits.additional_gids.empty(), kV07, "additionalGids");
  found.add(!edits.net_devices.empty(), kV11, "netDevices");
  if (edits.intel_rdt) {
    found.add(!edits.intel_rdt->schemata.empty() || edits.intel_rdt->enable_monitoring, kV11,
              "intelRdt's schemata and enableMonitoring");
  }
}

}  // namespace

Result<Version> parse_version(std::string_view text) {
  const auto bare = text.starts_with('v') ? text.substr(1) : text;
  for (const Version version : kVersions) {
    const auto full = to_string(version);
    if (bare == full || bare == std::string_view(full).substr(0, full.size() - 2)) return version;
  }
  return Error(
      Errc::Invalid,
      fmt::format("\"{}\" is not a version of CDI; versions are 0.3.0, 0.4.0, 0.5.0, 0.6.0, "
                  "0.7.0, 0.8.0, 1.0.0 and 1.1.0",
                  text));
}

std::string to_string(Version version) {
  return fmt::format("{}.{}.0", version.major, version.minor);
}

std::vector<VersionRequirement> version_requirements(const Spec& spec) {
  VersionRequirementFinder found;
  found.add(!spec.annotations.empty(), kV06, "annotations");
  const auto slash = spec.kind.find('/');
  found.add(slash != std::string::npos && spec.kind.find('.', slash) != std::string::npos, kV06,
            "a dot in the class");
  for (const auto& device : spec.devices) {
    found.add(!device.annotations.empty(), kV06, "annotations");
    found.add(!device.name.empty() && device.name[0] >= '0' && device.name[0] <= '9', kV05,
              "a device name that starts with a digit");
  }
  for_each_edits(spec, [&](const Edits& edits) { add_edits(found, edits); });
  return found.list;
}

Version lowest_version(const Spec& spec) {
  Version lowest = kV03;
  for (const auto& need : version_requirements(spec)) lowest = std::max(lowest, need.version);
  return lowest;
}

}  // namespace gantry::cdi
