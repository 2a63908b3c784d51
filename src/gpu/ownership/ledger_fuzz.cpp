// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/ownership_state.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// Any bytes give a state or none, and a state reads back unchanged.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)gantry::ownership::replay_records(text);
  const auto state = gantry::ownership::parse_state(text);
  if (!state.ok()) return 0;
  const auto again = gantry::ownership::replay_records(gantry::ownership::to_record(*state));
  if (!again.any || again.damaged || again.state != *state) std::abort();
  return 0;
}
