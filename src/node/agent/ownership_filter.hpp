// SPDX-License-Identifier: Apache-2.0
// Which GPUs the plugin may offer: not those that another owner has by the ledger, and not one that
// is to be offered in another way, or under another name, than the one in which a pod has it.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "node/agent/log.hpp"
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

  // False while another process has the ledger: try again later.
  bool open();

  struct Holding {
    std::string pod;       // "default/train"
    std::string resource;  // that the kubelet counts it under
    std::string device;    // the UUID of the GPU or the instance
  };
  struct InUse {
    // The kubelet has just said so. Only then a GPU changes its use: who asked for one a moment
    // before it was withdrawn may have no process on it for minutes.
    bool certain = false;
    std::map<std::string, std::vector<Holding>> pods;  // by GPU's UUID
    std::map<std::string, std::vector<std::uint32_t>> pids;
  };
  // Takes out of the offer what may not be offered, with the reason among its notes. When something
  // was held back that may be free later: in how long to look again.
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
  std::string reported_;                                // why there is none
  std::map<std::string, Clock::time_point> withdrawn_;  // not in the last offer, since when
};

}  // namespace gantry::agent
