// SPDX-License-Identifier: Apache-2.0
// The links of a pod that asks for shares of GPUs. Pure: what the API server's objects say in,
// links out. The words about room are the scheduler's own (src/place).
#pragma once

#include "ask/ask.hpp"
#include "ask/placement.hpp"
#include "base/result.hpp"
#include "json/document.hpp"
#include "place/cluster.hpp"
#include "why/chain.hpp"

#include <string>
#include <vector>

namespace gantry::why {

// What it asks, in words; or why that is nothing that can be asked, and what to write instead.
Link ask_link(const Result<std::optional<ask::PodAsk>>& ask);
std::string words_of(const ask::PodAsk& ask);

// One node, as the scheduler would answer for it.
struct Stand {
  place::NodeView view;
  place::Fit fit;
  std::string refuses;  // a taint, a selector, a cordon; "" = none
  std::string remedy;   // against that
};

// Why no node was found, then a line for each node that shares GPUs (few of many).
std::vector<Link> stand_links(json::Value pod, const ask::PodAsk& ask,
                              const std::vector<Stand>& stands);

// Of a pod on a node: which GPUs it was given, how much of each. `view` is its node's.
Link placement_link(json::Value pod, const ask::PodAsk& ask, const place::NodeView& view);

}  // namespace gantry::why
