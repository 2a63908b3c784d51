// SPDX-License-Identifier: Apache-2.0
// A state that is read, written and read again is the same value.
#include "gpu/mig_change/state.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::mig_change;  // NOLINT(google-build-using-namespace): its own program
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto state = parse_state(text); state.ok())
    GANTRY_ASSERT(parse_state(to_json(*state)).ok());
  return 0;
}
