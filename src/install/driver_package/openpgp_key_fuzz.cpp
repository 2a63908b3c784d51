// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of keys. What was read is written and read again, and stays the same.
#include "install/driver_package/openpgp_key.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::driver_package;  // NOLINT: a fuzz target
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto keys = parse_repository_keys(text);
  if (!keys.ok()) return 0;
  GANTRY_ASSERT(!keys->empty());
  for (const auto& key : *keys) {
    GANTRY_ASSERT(parse_fingerprint(key.fingerprint) == key.fingerprint);
    const auto again = parse_repository_keys(to_armor(key.packets));
    GANTRY_ASSERT(again.ok() && again->size() == 1);
    GANTRY_ASSERT(again->front().fingerprint == key.fingerprint);
    GANTRY_ASSERT(again->front().packets == key.packets);
  }
  return 0;
}
