// SPDX-License-Identifier: Apache-2.0
// The backends that can enforce a share's limits on this machine, and what each guarantees. `gantry
// share explain` prints this, and the choice of a backend uses it.
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
  std::string sentence;  // describes the backend
  bool here = false;
  std::string why;  // why it is available here or not
  std::vector<Guarantee> guarantees;
};

// All backends, in order of preference.
std::vector<BackendInfo> list_backends(const model::Inventory& machine, const sys::Host& host);

struct BackendChoice {
  policy::Backend backend = policy::Backend::Fence;
  std::string why;
};
BackendChoice choose_backend(const policy::Share& share, const model::Inventory& machine);

// Returns the share with its backend chosen. Unsupported, with the reason and the remedy, if the
// requested backend is not available or cannot enforce the requested limits.
Result<policy::Share> choose_and_check_backend(policy::Share share, const model::Inventory& machine,
                                               const sys::Host& host);

}  // namespace gantry::backend
