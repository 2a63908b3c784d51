// SPDX-License-Identifier: Apache-2.0
// Memory that a process holds beyond what it allocated: contexts, modules, the driver's own. NVML
// says how much a process has in all, its row how much of that is allocations; both change while
// they are read, so a difference counts only when the process was at rest meanwhile.
#pragma once

#include "sharing/daemon/shared_pages.hpp"

#include <cstdint>
#include <optional>

namespace gantry::daemon {

struct Overhead {
  std::uint64_t bytes = 0;
  std::uint32_t contexts = 0;  // that `bytes` includes
  bool operator==(const Overhead&) const = default;
};

// Whether the process was at rest from one look to the other: nothing of what it holds changed, and
// no call was under way that changes it. Only then do the row and what NVML shows fit.
bool is_quiescent(const ProcessUsage& before, const ProcessUsage& after);

// `used`: NVML's figure, read between the two looks at the row; nullopt: the process has nothing
// there, or NVML does not say.
Overhead updated_overhead(const Overhead& known, const ProcessUsage& before,
                          const ProcessUsage& after, std::optional<std::uint64_t> used);

// What a context costs on this card, from a process that has just made its first.
std::optional<std::uint64_t> context_cost(const Overhead& known, const Overhead& now);

}  // namespace gantry::daemon
