// SPDX-License-Identifier: Apache-2.0
// Which GPUs the plugin may offer, by the ledger: those that another owner has are not offered, and
// one whose use is to change waits until nobody has it any more.
#pragma once

#include "agent/log.hpp"
#include "ledger/ledger.hpp"
#include "offer/resources.hpp"
#include "sys/host.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gantry::agent {

class Ownership {
 public:
  Ownership(const sys::Host& host, const Log& log) : host_(host), log_(log) {}

  // False while another process has the ledger: try again later.
  bool open();

  struct InUse {
    std::map<std::string, std::vector<std::string>> pods;  // by GPU's UUID
    std::map<std::string, std::vector<std::uint32_t>> pids;
  };
  // Takes out of the offer what may not be offered, with the reason among its notes. True when
  // something was held back that may be free later.
  bool settle(offer::Offer& offer, const InUse& in_use);

 private:
  std::string reason_against(const offer::GpuUse& gpu, const InUse& in_use);

  const sys::Host& host_;
  const Log& log_;
  std::optional<ledger::Ledger> ledger_;
  // Not in the last offer: by the next time the kubelet has taken note.
  std::set<std::string> withdrawn_;
};

}  // namespace gantry::agent
