// SPDX-License-Identifier: Apache-2.0
// Runs only the MPS daemons, as NVIDIA's DaemonSet does; used when the agent is called as
// mps-control-daemon. `gantry agent` runs the daemons itself.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "node/options/options.hpp"

#include <functional>

namespace gantry::agent {

inline constexpr std::string_view kMpsMountPath =
    "/mps";  // where that container mounts the host's directory

struct MpsDaemonOptions {
  sys::Host host;
  options::Options options;
  Log log;
  std::function<Result<options::Options>()> reload;  // reads the options again; called on SIGHUP
};

// Runs until a signal arrives, then stops the daemons. Must be called while the process has only
// one thread.
Status run_mps_daemons(MpsDaemonOptions daemons);

// Mounts a tmpfs of half the memory at ROOT/shm, unless one is mounted: MPS and its clients share
// it.
Status mount_shm(const sys::Host& host, const std::string& mps_root);

}  // namespace gantry::agent
