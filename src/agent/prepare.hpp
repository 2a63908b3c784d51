// SPDX-License-Identifier: Apache-2.0
// What containers start from, kept as the machine is: the driver's directory, the inventory, and
// the CDI specifications that answers name.
#pragma once

#include "agent/log.hpp"
#include "model/inventory.hpp"
#include "observe/snapshot.hpp"
#include "offer/answer.hpp"
#include "offer/options.hpp"
#include "sys/host.hpp"

namespace gantry::agent {

struct Preparation {
  const sys::Host& host;
  const offer::Options& options;
  const offer::AnswerSetting& setting;
  const Log& log;
  observe::Counters& counters;
};

// What fails here is said, and does not keep the GPUs from being offered: they may be in use
// already.
void prepare(const model::Inventory& inventory, const Preparation& with);

}  // namespace gantry::agent
