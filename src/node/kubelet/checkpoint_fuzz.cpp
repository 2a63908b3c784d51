// SPDX-License-Identifier: Apache-2.0
// Whatever is accepted is in order: sorted holders, sorted ids, each once.
#include "node/kubelet/checkpoint.hpp"

#include <algorithm>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto checkpoint =
      gantry::kubelet::parse_checkpoint(std::string(reinterpret_cast<const char*>(data), size));
  if (!checkpoint.ok()) return 0;
  GANTRY_ASSERT(std::is_sorted(checkpoint->holders.begin(), checkpoint->holders.end()));
  for (const auto& holder : checkpoint->holders) {
    GANTRY_ASSERT(std::adjacent_find(holder.ids.begin(), holder.ids.end(),
                                     std::greater_equal<>()) == holder.ids.end());
    GANTRY_ASSERT(!gantry::kubelet::holders_of(*checkpoint, holder.resource, holder.ids).empty());
  }
  return 0;
}
