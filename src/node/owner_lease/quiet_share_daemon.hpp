// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/pci_address.hpp"
#include "sharing/daemon/client.hpp"

#include <optional>

namespace gantry::owner_lease {

// While it lives, the share daemon has no device node of a GPU open. Its shares on other GPUs stay;
// their limits are enforced by their fences, and their use is not read meanwhile.
class QuietShareDaemon {
 public:
  // Does nothing if the daemon is not running. Busy if it keeps this GPU open: nothing may unbind
  // the GPU then. Waits for its NVML process to end, seconds at most.
  static Result<QuietShareDaemon> ask(const sys::Host& host, const model::PciAddress& gpu);

 private:
  std::optional<daemon::Client> client_;
};

}  // namespace gantry::owner_lease
