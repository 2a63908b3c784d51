// SPDX-License-Identifier: Apache-2.0
// Old driver directories go when no container has them mounted any more.
#pragma once

#include "base/result.hpp"
#include "sys/host.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace gantry::prepared {

struct CollectOptions {
  // A container that is just starting may have looked at `current` before it was switched.
  std::chrono::seconds youngest{60};
  std::string processes = "/proc";  // whose mountinfo to read; the engine's machine, not the root's
};

struct Collected {
  std::vector<std::string> removed;  // "550.90.07-..."
  std::vector<std::string> in_use;   // kept: mounted somewhere
};

// Never removes what `current` leads to, nor anything while it is unsure: when some process's
// mounts cannot be read, nothing goes.
Result<Collected> collect(const sys::Host& host, const CollectOptions& options = {});

}  // namespace gantry::prepared
