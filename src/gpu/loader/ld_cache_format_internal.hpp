// SPDX-License-Identifier: Apache-2.0
// The bytes of ld.so.cache. Offsets of strings count from the start of the new block; offsets of
// extension sections count from the start of the file.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace gantry::loader::format {

static_assert(std::endian::native == std::endian::little, "the endianness flag below says little");

inline constexpr std::string_view kOldMagic{"ld.so-1.7.0\0", 12};
inline constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
inline constexpr std::uint8_t kEndianMask = 3;
inline constexpr std::uint8_t kEndianUnset = 0;  // before glibc 2.33
inline constexpr std::uint8_t kEndianLittle = 2;
inline constexpr std::uint32_t kExtensionMagic = 0xeaa42174;
inline constexpr std::uint32_t kTagGenerator = 0;
inline constexpr std::uint32_t kTagHwcaps = 1;

// An entry's hwcap with this bit, and no other above the ISA level's ten, is an index of a name in
// the hwcaps section.
inline constexpr std::uint64_t kHwcapIsIndex = std::uint64_t{1} << 62U;
inline constexpr std::uint64_t kIsaLevelMask = ((std::uint64_t{1} << 10U) - 1) << 32U;

struct OldHeader {
  char magic[12];
  std::uint32_t count;
};
struct OldEntry {
  std::uint32_t flags, name, path;
};
struct NewHeader {
  char magic[20];
  std::uint32_t count, strings_size;
  std::uint8_t flags, padding[3];
  std::uint32_t extension;
  std::uint32_t unused[3];
};
struct NewEntry {
  std::uint32_t flags, name, path, os_version;
  std::uint64_t hwcap;
};
struct ExtensionHeader {
  std::uint32_t magic, count;
};
struct ExtensionSection {
  std::uint32_t tag, flags, offset, size;
};
static_assert(sizeof(OldHeader) == 16 && sizeof(OldEntry) == 12 && sizeof(NewHeader) == 48 &&
              sizeof(NewEntry) == 24 && sizeof(ExtensionSection) == 16);

// The limits that we accept, far above the cache of any real machine.
inline constexpr std::size_t kMaxEntries = 65536;
inline constexpr std::size_t kMaxString = 4096;
inline constexpr std::size_t kMaxAllStrings = std::size_t{16} << 20;
inline constexpr std::size_t kMaxSections = 64;
inline constexpr std::size_t kMaxHwcaps = 4096;

}  // namespace gantry::loader::format
