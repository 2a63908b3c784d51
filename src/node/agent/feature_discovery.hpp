// SPDX-License-Identifier: Apache-2.0
// GPU feature discovery as a program, used when the agent is called as gpu-feature-discovery:
// writes the node's labels to a file, to standard output or to the cluster, once or at regular
// intervals.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "node/options/options.hpp"

#include <cstdio>
#include <functional>

namespace gantry::agent {

struct FeatureDiscovery {
  sys::Host host;
  options::Options options;
  Log log;
  std::FILE* out = stdout;                           // used if no output file is set
  std::function<Result<options::Options>()> reload;  // reads the options again; called on SIGHUP
};

// Runs until a signal arrives, or for one round. On exit it removes the label file, because
// node-feature-discovery would go on using it. Must be called while the process has only one
// thread.
Status discover(FeatureDiscovery discovery);

}  // namespace gantry::agent
