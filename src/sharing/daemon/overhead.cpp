// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/overhead.hpp"

#include <algorithm>

namespace gantry::daemon {
namespace {

std::uint64_t beyond(std::uint64_t used, std::uint64_t held) {
  return used > held ? used - held : 0;
}

std::uint64_t shown(const ProcessUsage& usage) {
  return usage.held - usage.managed;
}

}  // namespace

// Memory that was freed and allocated again gives the same number in both readings, but NVML did
// not see it in between. Therefore calls are counted, too.
bool is_quiescent(const ProcessUsage& before, const ProcessUsage& after) {
  return before.held == after.held && before.managed == after.managed && before.pending == 0 &&
         after.pending == 0 && before.contexts == after.contexts && before.begun == before.ended &&
         after.begun == before.begun;
}

Overhead updated_overhead(const Overhead& known, const ProcessUsage& before,
                          const ProcessUsage& after, std::optional<std::uint64_t> used) {
  if (!used) return {};
  if (is_quiescent(before, after)) return {beyond(*used, shown(after)), after.contexts};
  // A new context stays an estimate until both readings agree: NVML may have seen only a part of
  // it, or less than the row had at that time.
  if (before.contexts != after.contexts || after.contexts != known.contexts) return known;
  // The minimum, whichever of the changes NVML has seen.
  const auto least =
      beyond(*used, std::max(shown(before) + before.pending, shown(after) + after.pending));
  return {std::max(known.bytes, least), known.contexts};
}

std::optional<std::uint64_t> context_cost(const Overhead& known, const Overhead& now) {
  if (known.contexts != 0 || now.contexts != 1 || now.bytes == 0) return std::nullopt;
  return now.bytes;
}

}  // namespace gantry::daemon
