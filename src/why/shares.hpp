// SPDX-License-Identifier: Apache-2.0
// The links of a pod that asks for shares of GPUs: what the API server's objects say in, links out.
// The words about room are the scheduler's own (src/place); only share_state_links looks around.
#pragma once

#include "ask/ask.hpp"
#include "ask/placement.hpp"
#include "base/result.hpp"
#include "json/document.hpp"
#include "keeper/state.hpp"
#include "place/cluster.hpp"
#include "sys/host.hpp"
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

// Of a container on this node: how much of its share it uses, and what it was refused. nullptr: the
// keeper has no share of that name.
Link share_state_link(const std::string& container, const std::string& share,
                      const keeper::ShareState* state);
// The same of every container of the pod that was given a share.
std::vector<Link> share_state_links(const sys::Host& machine, json::Value pod);

}  // namespace gantry::why
