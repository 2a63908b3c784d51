// SPDX-License-Identifier: Apache-2.0
#include "sim/ld_cache_writer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace gantry::sim {
namespace {

struct Header {
  char magic[17];
  char version[3];
  std::uint32_t count;
  std::uint32_t string_bytes;
  std::uint8_t byte_order;  // 2: little-endian
  std::uint8_t padding[3];
  std::uint32_t extension_offset;
  std::uint32_t unused[3];
};
static_assert(sizeof(Header) == 48);

struct Entry {
  std::int32_t flags;
  std::uint32_t name;
  std::uint32_t path;
  std::uint32_t os_version;
  std::uint64_t hardware;
};
static_assert(sizeof(Entry) == 24);

constexpr std::int32_t kLibc6X8664 = 0x0303;
constexpr std::int32_t kLibc6 = 0x0003;  // i386

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::uint64_t take_number(std::string_view& text) {
  std::uint64_t value = 0;
  while (!text.empty() && is_digit(text.front())) {
    value = value * 10 + static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  return value;
}

std::int32_t flags_of(const LdCacheLibrary& library) {
  return library.is_32bit ? kLibc6 : kLibc6X8664;
}

}  // namespace

int compare_library_names(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto left = take_number(a);
      const auto right = take_number(b);
      if (left != right) return left < right ? -1 : 1;
    } else if (is_digit(a.front()) != is_digit(b.front())) {
      return is_digit(a.front()) ? 1 : -1;
    } else if (a.front() != b.front()) {
      return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front()) ? -1 : 1;
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() && b.empty()) return 0;
  return a.empty() ? -1 : 1;
}

std::string ld_cache(std::vector<LdCacheLibrary> libraries) {
  std::stable_sort(libraries.begin(), libraries.end(), [](const auto& a, const auto& b) {
    const int names = compare_library_names(a.name, b.name);
    return names != 0 ? names > 0 : flags_of(a) > flags_of(b);
  });
  const std::size_t strings_at = sizeof(Header) + libraries.size() * sizeof(Entry);
  std::string entries;
  std::string strings;
  auto keep = [&](const std::string& text) {
    const auto at = static_cast<std::uint32_t>(strings_at + strings.size());
    strings.append(text).push_back('\0');
    return at;
  };
  for (const auto& library : libraries) {
    Entry entry{};
    entry.flags = flags_of(library);
    entry.name = keep(library.name);
    entry.path = keep(library.path);
    entries.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  }
  Header header{};
  std::memcpy(header.magic, "glibc-ld.so.cache", sizeof header.magic);
  std::memcpy(header.version, "1.1", sizeof header.version);
  header.count = static_cast<std::uint32_t>(libraries.size());
  header.string_bytes = static_cast<std::uint32_t>(strings.size());
  header.byte_order = 2;
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + entries + strings;
}

}  // namespace gantry::sim
