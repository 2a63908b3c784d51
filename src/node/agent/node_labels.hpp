// SPDX-License-Identifier: Apache-2.0
// Computes the node's labels from its GPUs and from how they are offered.
#pragma once

#include "base/sys/host.hpp"
#include "node/labels/labels.hpp"
#include "node/options/options.hpp"

namespace gantry::agent {

labels::Labels node_labels(const sys::Host& host, const model::Inventory& inventory,
                           const options::Options& options, std::int64_t started_unix_s);

}  // namespace gantry::agent
