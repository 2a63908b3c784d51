// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/ld_cache.hpp"

#include "base/core/text.hpp"
#include "gpu/loader/ld_cache_format_internal.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>

namespace gantry::loader {
namespace {

using namespace format;

Error corrupt_ld_cache(std::string_view what) {
  return {Errc::Corrupt, fmt::format("ld.so.cache: {}; `ldconfig` writes a new one", what)};
}

template <class T>
std::optional<T> record_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T record{};
  std::memcpy(&record, bytes.data() + offset, sizeof record);
  return record;
}

// Strings of one block, with a budget: many entries may share one long string.
class Strings {
 public:
  explicit Strings(std::string_view block) : block_(block) {}

  std::optional<std::string> at(std::uint32_t offset) {
    if (offset >= block_.size()) return std::nullopt;
    const auto rest = block_.substr(offset, kMaxString + 1);
    const auto end = rest.find('\0');
    if (end == std::string_view::npos || end > budget_) return std::nullopt;
    budget_ -= end;
    return std::string(rest.substr(0, end));
  }

 private:
  std::string_view block_;
  std::size_t budget_ = kMaxAllStrings;
};

Result<LdCache> parse_old(std::string_view bytes, std::uint32_t count) {
  const auto end = sizeof(OldHeader) + std::uint64_t{count} * sizeof(OldEntry);
  Strings strings(bytes.substr(end));
  LdCache cache{.format = LdCacheFormat::Old};
  cache.entries.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto raw =
        *record_at<OldEntry>(bytes, sizeof(OldHeader) + std::uint64_t{i} * sizeof(OldEntry));
    auto name = strings.at(raw.name);
    auto path = strings.at(raw.path);
    if (!name || !path) return corrupt_ld_cache(fmt::format("entry {} points outside the file", i));
    cache.entries.push_back(
        {.name = *std::move(name), .path = *std::move(path), .flags = raw.flags});
  }
  return cache;
}

Result<std::vector<std::string>> parse_hwcaps(std::string_view bytes,
                                              const ExtensionSection& section, Strings& strings) {
  if (section.size % 4 != 0 || section.size / 4 > kMaxHwcaps)
    return corrupt_ld_cache("hwcaps section has a wrong size");
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < section.size / 4; ++i) {
    const auto offset =
        record_at<std::uint32_t>(bytes, std::uint64_t{section.offset} + std::uint64_t{i} * 4);
    auto name = offset ? strings.at(*offset) : std::nullopt;
    if (!name) return corrupt_ld_cache("hwcaps section points outside the file");
    names.push_back(*std::move(name));
  }
  return names;
}

// Fills the generator; returns the names of the hwcaps subdirectories.
Result<std::vector<std::string>> parse_extension(std::string_view bytes, std::uint32_t offset,
                                                 Strings& strings, LdCache& cache) {
  std::vector<std::string> hwcaps;
  if (offset == 0) return hwcaps;
  const auto header = record_at<ExtensionHeader>(bytes, offset);
  if (!header || header->magic != kExtensionMagic)
    return corrupt_ld_cache("extension section is damaged");
  if (header->count > kMaxSections) return corrupt_ld_cache("extension section has too many parts");
  for (std::uint32_t i = 0; i < header->count; ++i) {
    const auto section =
        record_at<ExtensionSection>(bytes, std::uint64_t{offset} + sizeof(ExtensionHeader) +
                                               std::uint64_t{i} * sizeof(ExtensionSection));
    if (!section || section->offset > bytes.size() ||
        bytes.size() - section->offset < section->size) {
      return corrupt_ld_cache("extension section points outside the file");
    }
    if (section->tag == kTagGenerator) {
      cache.generator =
          bytes.substr(section->offset, std::min<std::size_t>(section->size, kMaxString));
    } else if (section->tag == kTagHwcaps) {
      GANTRY_TRY(hwcaps, parse_hwcaps(bytes, *section, strings));
    }
  }
  return hwcaps;
}

Status parse_entries(std::string_view block, std::uint32_t count,
                     const std::vector<std::string>& hwcaps, Strings& strings, LdCache& cache) {
  cache.entries.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto raw =
        *record_at<NewEntry>(block, sizeof(NewHeader) + std::uint64_t{i} * sizeof(NewEntry));
    auto name = strings.at(raw.name);
    auto path = strings.at(raw.path);
    if (!name || !path) return corrupt_ld_cache(fmt::format("entry {} points outside the file", i));
    LdCacheEntry entry{.name = *std::move(name),
                       .path = *std::move(path),
                       .flags = raw.flags,
                       .os_version = raw.os_version,
                       .hwcap = raw.hwcap};
    const auto upper = raw.hwcap & ~std::uint64_t{0xffffffff} & ~kIsaLevelMask;
    if (upper == kHwcapIsIndex) {
      const auto index = static_cast<std::uint32_t>(raw.hwcap);
      if (index >= hwcaps.size())
        return corrupt_ld_cache(fmt::format("entry {} names no hwcaps directory", i));
      entry.hwcaps = hwcaps[index];
      entry.hwcap = raw.hwcap & kIsaLevelMask;
    }
    cache.entries.push_back(std::move(entry));
  }
  return {};
}

// `start`: where the new block begins; after the old block in a combined file.
Result<LdCache> parse_new(std::string_view bytes, std::size_t start, LdCacheFormat format) {
  const auto block = bytes.substr(start);
  const auto header = record_at<NewHeader>(block, 0);
  if (!header) return corrupt_ld_cache("ends in its header");
  const auto endian = header->flags & kEndianMask;
  if (endian != kEndianUnset && endian != kEndianLittle)
    return corrupt_ld_cache("it was written for another byte order");
  if (header->count > kMaxEntries)
    return corrupt_ld_cache(fmt::format("claims {} entries", header->count));
  const auto strings_at = sizeof(NewHeader) + std::uint64_t{header->count} * sizeof(NewEntry);
  if (strings_at > block.size() || block.size() - strings_at < header->strings_size) {
    return corrupt_ld_cache(fmt::format("claims {} entries and {} bytes of names in {} bytes",
                                        header->count, header->strings_size, block.size()));
  }
  Strings strings(block);
  LdCache cache{.format = format};
  GANTRY_TRY(const auto hwcaps, parse_extension(bytes, header->extension, strings, cache));
  GANTRY_CHECK(parse_entries(block, header->count, hwcaps, strings, cache));
  return cache;
}

// Overflows like the int in the loader: the order must be the same as the loader's.
std::uint32_t take_number(std::string_view& text) {
  std::uint32_t value = 0;
  while (!text.empty() && is_digit(text.front())) {
    value = value * 10 + static_cast<std::uint32_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  return value;
}

}  // namespace

bool LdCacheEntry::is_64bit() const {
  const auto architecture = flags & 0xff00U;
  return architecture != 0 && architecture != 0x0800U && architecture != 0x0900U;
}

Result<LdCache> parse_ld_cache(std::string_view bytes) {
  if (bytes.starts_with(kNewMagic)) return parse_new(bytes, 0, LdCacheFormat::New);
  if (!bytes.starts_with(kOldMagic)) return corrupt_ld_cache("it is not a loader cache");
  const auto header = record_at<OldHeader>(bytes, 0);
  if (!header) return corrupt_ld_cache("ends in its header");
  const auto end = sizeof(OldHeader) + std::uint64_t{header->count} * sizeof(OldEntry);
  if (header->count > kMaxEntries || end > bytes.size()) {
    return corrupt_ld_cache(
        fmt::format("claims {} entries in {} bytes", header->count, bytes.size()));
  }
  const auto start = (end + 7) & ~std::uint64_t{7};
  if (start < bytes.size() && bytes.substr(start).starts_with(kNewMagic)) {
    return parse_new(bytes, start, LdCacheFormat::Combined);
  }
  return parse_old(bytes, header->count);
}

int compare_library_names(std::string_view a, std::string_view b) {
  while (!a.empty()) {
    const bool digit_a = is_digit(a.front());
    const bool digit_b = !b.empty() && is_digit(b.front());
    if (digit_a && digit_b) {
      // The loader subtracts. Comparing gives a consistent order even for numbers that overflow.
      const auto number_a = static_cast<std::int32_t>(take_number(a));
      const auto number_b = static_cast<std::int32_t>(take_number(b));
      if (number_a != number_b) return number_a < number_b ? -1 : 1;
    } else if (digit_a != digit_b) {
      return digit_a ? 1 : -1;
    } else if (b.empty() || a.front() != b.front()) {
      return a.front() - (b.empty() ? '\0' : b.front());
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return b.empty() ? 0 : -b.front();
}

}  // namespace gantry::loader
