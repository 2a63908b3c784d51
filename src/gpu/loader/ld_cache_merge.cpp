// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/ld_cache_merge.hpp"

#include "base/core/text.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "gpu/loader/ld_cache_format_internal.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace gantry::loader {
namespace {

#if defined(__aarch64__)
constexpr std::uint32_t kNative = kAarch64;
constexpr std::uint32_t kNative32 = kArmHardFloat;
#else
constexpr std::uint32_t kNative = kAmd64;
constexpr std::uint32_t kNative32 = kElfLibc6;
#endif

LdCacheEntry entry_for(const model::LibraryEdit& library) {
  return {
      .name = library.name, .path = library.path, .flags = library.is_32bit ? kNative32 : kNative};
}

}  // namespace

bool is_ld_cache(std::string_view bytes) {
  return bytes.starts_with(format::kNewMagic) || bytes.starts_with(format::kOldMagic);
}

Result<std::string> merge_ld_cache(std::string_view old_cache,
                                   std::span<const model::LibraryEdit> libraries,
                                   std::span<const std::string> owned) {
  LdCache image;
  if (!old_cache.empty()) {
    GANTRY_TRY(image, parse_ld_cache(old_cache));
  }
  LdCache merged{.format = image.format == LdCacheFormat::Combined ? LdCacheFormat::Combined
                                                                   : LdCacheFormat::New};
  std::set<std::pair<std::string, std::uint32_t>> our_names;
  std::set<std::pair<std::string, std::uint32_t>> our_paths;
  for (const auto& library : libraries) {
    auto entry = entry_for(library);
    our_names.emplace(entry.name, entry.flags);
    // A library that is listed twice becomes one entry: a loader uses only the first.
    if (our_paths.emplace(entry.name + '\0' + entry.path, entry.flags).second) {
      merged.entries.push_back(std::move(entry));
    }
  }
  for (auto& entry : image.entries) {
    if (std::find(owned.begin(), owned.end(), parent_directory(entry.path)) != owned.end())
      continue;
    if (our_names.contains({entry.name, entry.flags})) {
      const bool preferred = !entry.hwcaps.empty() || entry.hwcap != 0;
      if (preferred || our_paths.contains({entry.name + '\0' + entry.path, entry.flags})) continue;
    }
    merged.entries.push_back(std::move(entry));
  }
  return serialize_ld_cache(merged);
}

}  // namespace gantry::loader
