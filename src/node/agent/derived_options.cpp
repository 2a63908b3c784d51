// SPDX-License-Identifier: Apache-2.0
#include "node/agent/derived_options.hpp"

#include "base/core/text.hpp"

namespace gantry::agent {
namespace {

std::vector<unsigned> numbers(const std::vector<std::int64_t>& xids) {
  std::vector<unsigned> found;
  found.reserve(xids.size());
  for (const auto xid : xids) found.push_back(static_cast<unsigned>(xid));
  return found;
}

// GKE's plugin monitors health only if it is told to, and withdraws a GPU for an uncorrectable
// memory error and for configured XIDs.
constexpr unsigned kGkeXid = 48;
void narrow_to_gke(const options::GkeOptions& gke, health::HealthOptions& health) {
  health.only_xids = true;
  health.xids.none_count = true;
  health.xids.critical.insert(kGkeXid);
  if (!gke.health_monitoring) health.xids.critical.clear();
}

}  // namespace

bool is_gke(const options::Options& options) {
  return options.program == options::Program::Gke;
}

std::string plugin_directory(const options::Options& options) {
  if (is_gke(options)) return options.gke.plugin_directory;
  return std::string(parent_directory(options.kubelet_socket));
}

health::HealthOptions health_options(const options::Options& options) {
  health::XidSettings settings{.disable = options.disable_healthchecks,
                               .enable = options.enable_healthchecks,
                               .critical = numbers(options.gke.critical_xids)};
  for (const auto xid : numbers(options.gke_config.critical_xids)) settings.critical.push_back(xid);
  health::HealthOptions health;
  health.xids = health::parse_xid_policy(settings).policy;
  if (is_gke(options)) narrow_to_gke(options.gke, health);
  return health;
}

}  // namespace gantry::agent
