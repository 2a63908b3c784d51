// SPDX-License-Identifier: Apache-2.0
// Any bytes as an image's ld.so.cache give an error, or a cache in which our library is the first
// of its name, no entry for newer processors overrides it, and merging again changes nothing.
#include "gpu/loader/ld_cache.hpp"
#include "gpu/loader/ld_cache_merge.hpp"

#include <algorithm>
#include <array>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry;
  const std::array<model::LibraryEdit, 2> ours = {
      {{.name = "libcuda.so.1", .path = "/usr/local/nvidia/lib64/libcuda.so.1"},
       {.name = "libcuda.so.1", .path = "/usr/local/nvidia/lib/libcuda.so.1", .is_32bit = true}}};
  const auto merged = loader::merge_ld_cache({reinterpret_cast<const char*>(data), size}, ours);
  if (!merged.ok()) return 0;
  const auto cache = loader::parse_ld_cache(*merged);
  GANTRY_ASSERT(cache.ok());
  const auto first = std::find_if(cache->entries.begin(), cache->entries.end(), [](const auto& e) {
    return e.name == "libcuda.so.1" && e.flags == loader::kAmd64;
  });
  GANTRY_ASSERT(first != cache->entries.end() && first->path == ours[0].path);
  const auto again = loader::merge_ld_cache(*merged, ours);
  GANTRY_ASSERT(again.ok() && *again == *merged);
  return 0;
}
