// SPDX-License-Identifier: Apache-2.0
// Takes the driver off a machine: modules, nodes, links, loader cache, unit and hooks, files. What
// was there before the first installation is there again.
#pragma once

#include "install/driver_setup/install.hpp"

namespace gantry::driver_setup {

struct RemoveOptions {
  bool drain = false;      // wait until the processes that use GPUs have ended
  bool terminate = false;  // with drain: send them SIGTERM. Processes of pods are never signalled
  unsigned drain_seconds = 300;
  bool accepts_unknown = false;  // processes that cannot be looked into
};

// What remove() would do, one sentence each; empty if nothing is installed.
Result<std::vector<std::string>> preview_remove(const sys::Host& host);

// NotFound if nothing is installed. Busy if a process uses the driver. An installation that did not
// end is taken back first. After an error, the same call goes on.
Result<SetupReport> remove(const sys::Host& host, const RemoveOptions& remove,
                           const SetupOptions& options, InstallEffects& effects);

}  // namespace gantry::driver_setup
