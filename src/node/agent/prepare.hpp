// SPDX-License-Identifier: Apache-2.0
// What containers start from, kept as the machine is: the driver's directory, the inventory, and
// the CDI specifications that answers name.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "node/agent/log.hpp"
#include "node/metrics/snapshot.hpp"
#include "node/options/options.hpp"
#include "node/resources/answer.hpp"

namespace gantry::agent {

struct Preparation {
  const sys::Host& host;
  const options::Options& options;
  const resources::AnswerSetting& setting;
  const Log& log;
  metrics::Counters& counters;
};

// What fails here is said, and does not keep the GPUs from being offered: they may be in use
// already.
void prepare(const model::Inventory& inventory, const Preparation& with);

}  // namespace gantry::agent
