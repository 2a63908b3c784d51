// SPDX-License-Identifier: Apache-2.0
// Decides which GPUs the plugin may offer. It holds back a GPU that has another owner in the
// ownership ledger, and a GPU that a pod holds in another way or under another name than the new
// offer would use.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "node/resources/resources.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::agent {

class OwnershipFilter {
 public:
  using Clock = std::chrono::steady_clock;

  OwnershipFilter(const sys::Host& host, const Log& log) : host_(host), log_(log) {}

  // Returns false while another process has the ledger open: try again later.
  bool open();

  struct HeldDevice {
    std::string pod;       // "default/train"
    std::string resource;  // under which the kubelet counts the device
    std::string device;    // the UUID of the GPU or the MIG instance
  };
  struct InUse {
    // True if the kubelet reported this just now. Only then may a GPU change its use: a pod that
    // got the GPU just before it was withdrawn may have no process on it for minutes.
    bool certain = false;
    std::map<std::string, std::vector<HeldDevice>> pods;  // by UUID of the GPU
    std::map<std::string, std::vector<std::uint32_t>> pids;
  };
  // Removes from the offer what must not be offered, and adds the reason to its notes. Returns when
  // to look again if a GPU was held back that may become free later.
  std::optional<std::chrono::milliseconds> settle(resources::Offer& offer, const InUse& in_use,
                                                  Clock::time_point now = Clock::now());

 private:
  std::chrono::milliseconds next_look(const InUse& in_use, Clock::time_point now) const;
  std::string reason_by_ledger(const resources::GpuUse& gpu, const InUse& in_use,
                               Clock::time_point now);
  std::string reason_by_former(const resources::GpuUse& gpu,
                               const Result<ownership::OwnershipState>& former) const;

  const sys::Host& host_;
  const Log& log_;
  std::optional<ownership::OwnershipStore> ledger_;
  std::string reported_;  // why the ledger is not open
  // Devices that are not in the last offer, and since when.
  std::map<std::string, Clock::time_point> withdrawn_;
};

}  // namespace gantry::agent
