// SPDX-License-Identifier: Apache-2.0
// Who can hold a share's limits on this machine, and how well: the truth that `gantry share
// explain` tells and by which a backend is chosen.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "sharing/policy/share.hpp"

#include <string>
#include <vector>

namespace gantry::backend {

struct Guarantee {
  std::string what;     // "memory", "time", "faults"
  std::string against;  // "accident", "ordinary program", "hostile process"
  std::string holds;    // "yes", "no", "in part"
  std::string how;
};

struct BackendInfo {
  std::string name;
  std::string sentence;  // what it is
  bool here = false;
  std::string why;  // it is or is not here
  std::vector<Guarantee> guarantees;
};

// All of them, in the order in which they are preferred where nothing was asked for.
std::vector<BackendInfo> list_backends(const model::Inventory& machine, const sys::Host& host);

struct BackendChoice {
  policy::Backend backend = policy::Backend::Fence;
  std::string why;
};
BackendChoice choose_backend(const policy::Share& share, const model::Inventory& machine);

// The share with its backend chosen. Unsupported, with the reason and what would help, for one that
// is not here or cannot hold what was asked for.
Result<policy::Share> choose_and_check_backend(policy::Share share, const model::Inventory& machine,
                                               const sys::Host& host);

}  // namespace gantry::backend
