// SPDX-License-Identifier: Apache-2.0
// Who keeps the driver from being unloaded, and the driver's own services, which are stopped for it
// and started again.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/termination.hpp"
#include "install/driver_setup/install_effects.hpp"
#include "vm/vfio/holders.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

// nvidia-persistenced, where no unit has it. Stands among services under this name.
inline constexpr std::string_view kPersistenceDaemon = "nvidia-persistenced";

// The processes that must end before the driver can be unloaded, each once.
std::vector<vfio::Holder> find_blocking_processes(const sys::Host& host);

struct DrainRequest {
  bool drain = false;      // wait
  bool terminate = false;  // and send SIGTERM, once, to each process that is in no pod
  unsigned seconds = 300;
  // Goes on if there are processes that cannot be looked into (--ignore gpu-users-unknown).
  bool accepts_unknown = false;
  const sys::Termination* stop = nullptr;  // ends the wait: Timeout
};

// Busy, with every process, its pod and what helps, if there are any when the time is over. Busy at
// once if something holds the modules and there are processes that cannot be looked into.
Status await_idle(const sys::Host& host, const DrainRequest& request, InstallEffects& effects,
                  const std::function<void(std::string_view)>& progress);

// Whether the codes of --ignore have that of unknown users.
bool accepts_unknown_users(const std::vector<std::string>& ignore);

// The process of nvidia-persistenced outside systemd; 0 if there is none.
std::uint32_t persistence_daemon(const sys::Host& host);

// What we start runs in our PID namespace: in a pod that is not the machine's, the kernel ends it
// with the pod's first process. False if that cannot be seen.
bool ends_with_our_pod(const sys::Host& host);

bool has_running_systemd(const sys::Host& host);

}  // namespace gantry::driver_setup
