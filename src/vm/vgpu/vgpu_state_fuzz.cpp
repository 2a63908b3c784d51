// SPDX-License-Identifier: Apache-2.0
// A state that is read, written and read again is the same value.
#include "vm/vgpu/state.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::vgpu;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto intent = parse_intent(text); intent.ok())
    GANTRY_ASSERT(*parse_intent(to_json(*intent)) == *intent);
  if (const auto journal = parse_journal(text); journal.ok())
    GANTRY_ASSERT(parse_journal(to_json(*journal)).ok());
  if (const auto types = parse_known_types(text); types.ok())
    GANTRY_ASSERT(parse_known_types(to_json(*types)).ok());
  return 0;
}
