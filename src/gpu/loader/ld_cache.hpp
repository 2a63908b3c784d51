// SPDX-License-Identifier: Apache-2.0
// Reads and writes /etc/ld.so.cache. Reads the old format (ld.so-1.7.0), the new one
// (glibc-ld.so.cache1.1) and both in one file; damaged or hostile bytes are Corrupt. Writes the new
// format, sorted as the loader's binary search needs it, with the extension section that
// glibc-hwcaps entries need.
//
//   std::string bytes = *write_cache({.entries = {{.name = "libcuda.so.1",
//                                                  .path = "/usr/local/nvidia/lib64/libcuda.so.1",
//                                                  .flags = kAmd64}}});
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::loader {

// Low byte: kind of library. Next byte: architecture. These are the pairs glibc writes.
inline constexpr std::uint32_t kElfLibc6 = 0x0003;  // also i386, which has no architecture byte
inline constexpr std::uint32_t kAmd64 = 0x0303;
inline constexpr std::uint32_t kPpc64le = 0x0503;
inline constexpr std::uint32_t kX32 = 0x0803;
inline constexpr std::uint32_t kArmHardFloat = 0x0903;
inline constexpr std::uint32_t kAarch64 = 0x0a03;

struct LdCacheEntry {
  std::string name{};  // what programs ask for: "libcuda.so.1"
  std::string path{};  // where it is
  std::uint32_t flags = kAmd64;
  std::uint32_t os_version = 0;  // least kernel, as in the ABI note; 0 since glibc 2.36
  std::uint64_t hwcap = 0;       // legacy capability bits; the index bits of hwcaps are not shown
  std::string hwcaps{};          // "x86-64-v2": found in a glibc-hwcaps subdirectory of that name
  bool operator==(const LdCacheEntry&) const = default;

  bool is_64bit() const;
};

enum class LdCacheFormat : std::uint8_t { Old, New, Combined };

struct LdCache {
  std::vector<LdCacheEntry>
      entries{};  // in file order; among equal names the loader takes the first that it can use
  LdCacheFormat format = LdCacheFormat::New;
  std::string generator{};  // the program that wrote it, "" if unknown
  bool operator==(const LdCache&) const = default;
};

// Corrupt unless it is a complete cache in this machine's byte order.
Result<LdCache> parse_ld_cache(std::string_view bytes);

// Entries may be in any order; equal names keep their order, so the first one wins. Invalid if a
// name or path is empty, contains a NUL byte, or is longer than the reader accepts. `format` Old is
// Unsupported: no loader since glibc 2.2 needs only that format.
Result<std::string> serialize_ld_cache(const LdCache& cache);

// The loader's order of names: runs of digits compare as numbers. <0, 0, >0.
int compare_library_names(std::string_view a, std::string_view b);

}  // namespace gantry::loader
