// SPDX-License-Identifier: Apache-2.0
// Any bytes give an error, or entries that can be written and read back unchanged.
#include "gpu/loader/ld_cache.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::loader;
  auto cache = parse_ld_cache({reinterpret_cast<const char*>(data), size});
  if (!cache.ok()) return 0;
  if (cache->format == LdCacheFormat::Old) cache->format = LdCacheFormat::New;
  const auto bytes = serialize_ld_cache(*cache);
  if (!bytes.ok()) return 0;
  const auto again = parse_ld_cache(*bytes);
  GANTRY_ASSERT(again.ok());
  GANTRY_ASSERT(again->entries.size() == cache->entries.size());
  return 0;
}
