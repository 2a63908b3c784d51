// SPDX-License-Identifier: Apache-2.0
#include "node/setup/node_setup.hpp"

#include "node/setup/node_setup_internal.hpp"

#include <algorithm>

namespace gantry::setup {

bool NodeReport::failed() const {
  return std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step.failed; });
}

Result<NodeReport> node_up(const sys::Host& host, const NodeOptions& options) {
  GANTRY_TRY(auto journal, NodeJournal::open(host));
  NodeReport report;
  const SetupContext work{host, options, journal, report};
  GANTRY_CHECK(refresh_step(work).in("preparing the driver files and the CDI specification"));
  engine_steps(work);
  agent_step(work);
  return report;
}

}  // namespace gantry::setup
