// SPDX-License-Identifier: Apache-2.0
// The MPS daemons by themselves, as in NVIDIA's DaemonSet: what the agent is when it is called
// mps-control-daemon. `gantry agent` keeps them itself.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "node/agent/log.hpp"
#include "node/options/options.hpp"

#include <functional>

namespace gantry::agent {

inline constexpr std::string_view kMpsMountPath =
    "/mps";  // the host's directory, in that container

struct MpsDaemonOptions {
  sys::Host host;
  options::Options options;
  Log log;
  std::function<Result<options::Options>()> reload;  // SIGHUP
};

// Until a signal ends it; the daemons end with it. From a process with one thread.
Status run_mps_daemons(MpsDaemonOptions daemons);

// A tmpfs of half the memory at ROOT/shm, unless there is one: what MPS and its clients share.
Status mount_shm(const sys::Host& host, const std::string& mps_root);

}  // namespace gantry::agent
