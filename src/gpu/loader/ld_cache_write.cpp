// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/ld_cache.hpp"
#include "gpu/loader/ld_cache_format_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace gantry::loader {
namespace {

using namespace format;

constexpr std::string_view kGenerator = "gantry " GANTRY_VERSION;

template <class T>
void append(std::string& out, const T& record) {
  out.append(reinterpret_cast<const char*>(&record), sizeof record);
}

bool writable(std::string_view text) {
  return !text.empty() && text.size() <= kMaxString && text.find('\0') == std::string_view::npos;
}

Status check(const LdCache& cache) {
  if (cache.format == LdCacheFormat::Old) {
    return Error(
        Errc::Unsupported,
        "ld.so.cache: Gantry reads the format from before glibc 2.2 but does not write it");
  }
  if (cache.entries.size() > kMaxEntries) {
    return Error(Errc::Invalid,
                 fmt::format("ld.so.cache: {} entries are too many", cache.entries.size()));
  }
  std::size_t all_strings = 0;  // counted as the reader counts them
  for (const auto& entry : cache.entries) {
    all_strings += entry.name.size() + entry.path.size() + entry.hwcaps.size();
    const bool hwcaps_ok = entry.hwcaps.empty() || writable(entry.hwcaps);
    if (!writable(entry.name) || !writable(entry.path) || !hwcaps_ok) {
      return Error(Errc::Invalid, fmt::format("ld.so.cache: cannot hold the entry \"{}\" => \"{}\"",
                                              entry.name.substr(0, 64), entry.path.substr(0, 64)));
    }
  }
  if (all_strings > kMaxAllStrings) {
    return Error(Errc::Invalid, "ld.so.cache: more than 16 MiB of names");
  }
  return {};
}

// Descending by name, then by flags; entries for newer processors before plain ones.
bool before(const LdCacheEntry* a, const LdCacheEntry* b) {
  if (const int names = compare_library_names(a->name, b->name); names != 0) return names > 0;
  if (a->flags != b->flags) return a->flags > b->flags;
  if (a->hwcaps.empty() != b->hwcaps.empty()) return b->hwcaps.empty();
  if (a->hwcaps != b->hwcaps) return a->hwcaps < b->hwcaps;
  return a->hwcap > b->hwcap;
}

std::vector<const LdCacheEntry*> sorted(const std::vector<LdCacheEntry>& entries) {
  std::vector<const LdCacheEntry*> order;
  order.reserve(entries.size());
  for (const auto& entry : entries) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

// The string table. A name that ends its path (nearly all do) is stored within it.
class StringTable {
 public:
  explicit StringTable(std::size_t base) : base_(base) {}

  std::uint32_t add(std::string_view text) {
    const auto [it, added] = known_.try_emplace(std::string(text), 0);
    if (added) {
      it->second = static_cast<std::uint32_t>(base_ + bytes_.size());
      bytes_.append(text).push_back('\0');
    }
    return it->second;
  }

  std::uint32_t add_name(std::string_view name, std::string_view path) {
    const auto at = add(path);
    if (!path.ends_with(name)) return add(name);
    return static_cast<std::uint32_t>(at + path.size() - name.size());
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::size_t base_;
  std::string bytes_;
  std::map<std::string, std::uint32_t, std::less<>> known_;
};

// Names of glibc-hwcaps subdirectories, sorted as the loader expects them.
std::map<std::string, std::uint32_t> hwcaps_of(const std::vector<LdCacheEntry>& entries) {
  std::map<std::string, std::uint32_t> names;
  for (const auto& entry : entries) {
    if (!entry.hwcaps.empty()) names.emplace(entry.hwcaps, 0);
  }
  std::uint32_t index = 0;
  for (auto& [name, number] : names) number = index++;
  return names;
}

std::string extension(std::size_t at, const std::vector<std::uint32_t>& hwcaps_offsets,
                      std::string_view generator) {
  const std::uint32_t count = hwcaps_offsets.empty() ? 1 : 2;
  const auto hwcaps_size = hwcaps_offsets.size() * sizeof(std::uint32_t);
  const auto hwcaps_at = at + sizeof(ExtensionHeader) + count * sizeof(ExtensionSection);
  std::string out;
  append(out, ExtensionHeader{kExtensionMagic, count});
  append(out,
         ExtensionSection{kTagGenerator, 0, static_cast<std::uint32_t>(hwcaps_at + hwcaps_size),
                          static_cast<std::uint32_t>(generator.size())});
  if (!hwcaps_offsets.empty()) {
    append(out, ExtensionSection{kTagHwcaps, 0, static_cast<std::uint32_t>(hwcaps_at),
                                 static_cast<std::uint32_t>(hwcaps_size)});
  }
  for (const auto offset : hwcaps_offsets) append(out, offset);
  return out.append(generator);
}

// Old loaders read only the old block; all newer loaders use the new block after it.
std::string old_block(const std::vector<const LdCacheEntry*>& order, const std::string& entries) {
  OldHeader header{};
  std::memcpy(header.magic, kOldMagic.data(), sizeof header.magic);
  header.count = static_cast<std::uint32_t>(order.size());
  std::string out;
  append(out, header);
  const auto end = sizeof(OldHeader) + order.size() * sizeof(OldEntry);
  const auto padding = ((end + 7) & ~std::size_t{7}) - end;
  for (std::size_t i = 0; i < order.size(); ++i) {
    NewEntry entry{};
    std::memcpy(&entry, entries.data() + i * sizeof entry, sizeof entry);
    // Old offsets count from the end of the old entries.
    append(out, OldEntry{entry.flags, static_cast<std::uint32_t>(entry.name + padding),
                         static_cast<std::uint32_t>(entry.path + padding)});
  }
  return out.append(padding, '\0');
}

}  // namespace

Result<std::string> serialize_ld_cache(const LdCache& cache) {
  GANTRY_CHECK(check(cache));
  const auto order = sorted(cache.entries);
  const auto hwcaps = hwcaps_of(cache.entries);
  StringTable strings(sizeof(NewHeader) + order.size() * sizeof(NewEntry));
  std::vector<std::uint32_t> hwcaps_offsets;
  hwcaps_offsets.reserve(hwcaps.size());
  for (const auto& [name, index] : hwcaps) hwcaps_offsets.push_back(strings.add(name));
  std::string entries;
  for (const auto* entry : order) {
    const auto name = strings.add_name(entry->name, entry->path);
    const auto path = strings.add(entry->path);
    const auto hwcap =
        entry->hwcaps.empty()
            ? entry->hwcap
            : (kHwcapIsIndex | (entry->hwcap & kIsaLevelMask) | hwcaps.at(entry->hwcaps));
    append(entries, NewEntry{entry->flags, name, path, entry->os_version, hwcap});
  }
  std::string file;
  if (cache.format == LdCacheFormat::Combined) file = old_block(order, entries);
  const auto block_at = file.size();
  const auto strings_end = block_at + sizeof(NewHeader) + entries.size() + strings.bytes().size();
  const auto extension_at = (strings_end + 3) & ~std::size_t{3};
  NewHeader header{};
  std::memcpy(header.magic, kNewMagic.data(), sizeof header.magic);
  header.count = static_cast<std::uint32_t>(order.size());
  header.strings_size = static_cast<std::uint32_t>(strings.bytes().size());
  header.flags = kEndianLittle;
  header.extension = static_cast<std::uint32_t>(extension_at);
  append(file, header);
  file.append(entries).append(strings.bytes()).append(extension_at - strings_end, '\0');
  file.append(extension(extension_at, hwcaps_offsets,
                        cache.generator.empty() ? kGenerator : std::string_view(cache.generator)));
  return file;
}

}  // namespace gantry::loader
