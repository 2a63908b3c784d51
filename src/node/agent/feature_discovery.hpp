// SPDX-License-Identifier: Apache-2.0
// GPU feature discovery by itself, as the agent is when it is called gpu-feature-discovery: the
// node's labels, once or again and again, to a file, to standard output or to the cluster.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "node/agent/log.hpp"
#include "node/options/options.hpp"

#include <cstdio>
#include <functional>

namespace gantry::agent {

struct FeatureDiscovery {
  sys::Host host;
  options::Options options;
  Log log;
  std::FILE* out = stdout;                           // where no file is named
  std::function<Result<options::Options>()> reload;  // SIGHUP
};

// Until a signal ends it, or one round is done. A file that others would go on believing is taken
// away at the end. From a process with one thread.
Status discover(FeatureDiscovery discovery);

}  // namespace gantry::agent
