// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/elf.hpp"

#include <elf.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gantry::loader {
namespace {

constexpr std::size_t kFirstRead = 4096;  // the header and, in practice, all program headers
constexpr std::size_t kMaxSegments = 512;
constexpr std::size_t kMaxElfSections = 16384;
constexpr std::uint64_t kMaxDynamicBytes = std::uint64_t{256} * 1024;
constexpr std::size_t kMaxStrings = 1024;
constexpr std::uint64_t kMaxElfString = 1024;
constexpr std::uint64_t kMaxNoteBytes = 1 << 20;
constexpr std::size_t kMaxNotes = 1024;
constexpr std::uint64_t kMaxSectionNames = 1 << 20;
constexpr std::size_t kMaxVersions = 4096;

Error corrupt_elf(std::string_view what) {
  return {Errc::Corrupt, fmt::format("ELF file: {}", what)};
}

// A record at an offset of a buffer that was checked to be long enough.
template <class T>
T record(std::string_view bytes, std::size_t offset = 0) {
  GANTRY_ASSERT(offset <= bytes.size() && bytes.size() - offset >= sizeof(T));
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Calls with the 64- or 32-bit record; both have the same member names.
template <class T64, class T32, class Use>
void each_record(std::string_view table, bool is_64bit, std::size_t count, Use use) {
  for (std::size_t i = 0; i < count; ++i) {
    if (is_64bit) {
      use(record<T64>(table, i * sizeof(T64)));
    } else {
      use(record<T32>(table, i * sizeof(T32)));
    }
  }
}

std::string up_to_nul(std::string_view text) {
  return std::string(text.substr(0, text.find('\0')));
}

std::uint64_t padded(std::uint64_t size) {
  return (size + 3) & ~std::uint64_t{3};
}

// Notes of one section or segment, appended until the limit.
Status append_notes(std::string_view bytes, const std::string& section,
                    std::vector<ElfNote>& notes) {
  while (bytes.size() >= sizeof(Elf64_Nhdr)) {
    const auto header = record<Elf64_Nhdr>(bytes);
    bytes.remove_prefix(sizeof header);
    const auto owner_size = padded(header.n_namesz);
    const auto description_size = padded(header.n_descsz);
    if (owner_size > bytes.size() || header.n_descsz > bytes.size() - owner_size) {
      return corrupt_elf("a note is longer than its section");
    }
    if (notes.size() >= kMaxNotes) return corrupt_elf("too many notes");
    notes.push_back({.section = section,
                     .owner = up_to_nul(bytes.substr(0, header.n_namesz)),
                     .type = header.n_type,
                     .description = std::string(bytes.substr(owner_size, header.n_descsz))});
    bytes.remove_prefix(std::min<std::uint64_t>(owner_size + description_size, bytes.size()));
  }
  return {};
}

}  // namespace

Result<Elf> Elf::open(int fd) {
  return opened(Elf(fd, {}));
}
Result<Elf> Elf::open(std::string_view bytes) {
  return opened(Elf(-1, bytes));
}

Result<Elf> Elf::opened(Elf elf) {
  GANTRY_CHECK(elf.read_headers());
  return elf;
}

Result<std::string> Elf::read_some(std::uint64_t offset, std::uint64_t size) const {
  if (fd_ < 0)
    return std::string(bytes_.substr(std::min<std::uint64_t>(offset, bytes_.size()), size));
  if (offset > static_cast<std::uint64_t>(INT64_MAX) - size) return std::string();
  std::string buffer(size, '\0');
  std::size_t filled = 0;
  while (filled < size) {
    const auto got =
        ::pread(fd_, buffer.data() + filled, size - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "read ELF file");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  buffer.resize(filled);
  return buffer;
}

Result<std::string> Elf::read(std::uint64_t offset, std::uint64_t size) const {
  GANTRY_TRY(auto bytes, read_some(offset, size));
  if (bytes.size() < size) {
    return corrupt_elf(
        fmt::format("the file ends before byte {}, which a table needs", offset + size));
  }
  return bytes;
}

Status Elf::read_headers() {
  GANTRY_TRY(const auto start, read_some(0, kFirstRead));
  if (start.size() < EI_NIDENT || std::memcmp(start.data(), ELFMAG, SELFMAG) != 0) {
    return corrupt_elf("it does not begin with the ELF magic");
  }
  const auto elf_class = start[EI_CLASS];
  if (elf_class != ELFCLASS32 && elf_class != ELFCLASS64)
    return corrupt_elf("is neither 32- nor 64-bit");
  if (start[EI_DATA] != ELFDATA2LSB) return corrupt_elf("is not little endian");
  is_64bit_ = elf_class == ELFCLASS64;
  return read_segments(start);
}

Status Elf::read_segments(std::string_view start) {
  std::uint64_t at = 0;
  std::size_t count = 0;
  std::size_t entry_size = 0;
  std::size_t section_entry_size = 0;
  const auto take = [&](const auto& header) {
    type_ = header.e_type;
    machine_ = header.e_machine;
    section_names_ = header.e_shstrndx;
    section_count_ = header.e_shnum;
    sections_at_ = header.e_shoff;
    section_entry_size = header.e_shentsize;
    at = header.e_phoff;
    count = header.e_phnum;
    entry_size = header.e_phentsize;
  };
  if (start.size() < (is_64bit_ ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
    return corrupt_elf("ends in its header");
  each_record<Elf64_Ehdr, Elf32_Ehdr>(start, is_64bit_, 1, take);
  // If the section table has another entry size, only the segments are read.
  if (section_entry_size != (is_64bit_ ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
    section_count_ = 0;
  if (count == 0) return {};
  const std::size_t known = is_64bit_ ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  if (entry_size != known || count > kMaxSegments)
    return corrupt_elf("program headers have a wrong size");
  std::string further;
  std::string_view table;
  if (at <= start.size() && start.size() - at >= count * known) {
    table = start.substr(at);
  } else {
    GANTRY_TRY(further, read(at, count * known));
    table = further;
  }
  each_record<Elf64_Phdr, Elf32_Phdr>(table, is_64bit_, count, [&](const auto& header) {
    segments_.push_back({header.p_type, header.p_offset, header.p_vaddr, header.p_filesz});
  });
  return {};
}

Result<std::uint64_t> Elf::offset_of(std::uint64_t address) const {
  for (const auto& segment : segments_) {
    if (segment.type == PT_LOAD && address >= segment.address &&
        address - segment.address < segment.file_size) {
      const auto into = address - segment.address;
      if (into > UINT64_MAX - segment.offset) break;
      return segment.offset + into;
    }
  }
  return corrupt_elf(fmt::format("address {:#x} is in no segment", address));
}

Result<Elf::Dynamic> Elf::read_dynamic() const {
  Dynamic dynamic;
  const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                    [](const Segment& s) { return s.type == PT_DYNAMIC; });
  if (segment == segments_.end()) return dynamic;
  const std::size_t entry_size = is_64bit_ ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
  if (segment->file_size > kMaxDynamicBytes) return corrupt_elf("dynamic section is too large");
  GANTRY_TRY(const auto table, read(segment->offset, segment->file_size));
  std::uint64_t strings = 0;
  std::uint64_t version_needs = 0;
  bool ended = false;
  each_record<Elf64_Dyn, Elf32_Dyn>(table, is_64bit_, table.size() / entry_size,
                                    [&](const auto& entry) {
                                      if (ended) return;
                                      const std::uint64_t value = entry.d_un.d_val;
                                      switch (static_cast<std::int64_t>(entry.d_tag)) {
                                        case DT_NULL: ended = true; break;
                                        case DT_NEEDED: dynamic.needed.push_back(value); break;
                                        case DT_RPATH:
                                        case DT_RUNPATH: dynamic.search.push_back(value); break;
                                        case DT_SONAME:
                                          dynamic.soname = value;
                                          dynamic.has_soname = true;
                                          break;
                                        case DT_STRTAB: strings = value; break;
                                        case DT_STRSZ: dynamic.strings_size = value; break;
                                        case DT_VERNEED: version_needs = value; break;
                                        case DT_VERNEEDNUM:
                                          dynamic.version_need_count = value;
                                          break;
                                        default: break;
                                      }
                                    });
  if (dynamic.needed.size() > kMaxStrings || dynamic.search.size() > kMaxStrings) {
    return corrupt_elf("it needs too many libraries");
  }
  if (strings != 0) {
    GANTRY_TRY(dynamic.strings, offset_of(strings));
  }
  if (version_needs != 0) {
    GANTRY_TRY(dynamic.version_needs, offset_of(version_needs));
  }
  return dynamic;
}

Result<std::string> Elf::string_at(const Dynamic& dynamic, std::uint64_t offset) const {
  if (dynamic.strings == 0 || offset >= dynamic.strings_size)
    return corrupt_elf("a name is outside the string table");
  if (offset > UINT64_MAX - dynamic.strings)
    return corrupt_elf("a name is outside the string table");
  const auto size = std::min(dynamic.strings_size - offset, kMaxElfString);
  // Most names are short: one small read, and a longer one for the rest.
  for (const auto part : {std::min<std::uint64_t>(size, 64), size}) {
    GANTRY_TRY(const auto text, read_some(dynamic.strings + offset, part));
    if (text.find('\0') != std::string::npos) return up_to_nul(text);
  }
  return corrupt_elf("a name has no terminating NUL");
}

Result<std::string> Elf::soname() const {
  GANTRY_TRY(const auto dynamic, read_dynamic());
  if (!dynamic.has_soname) return std::string();
  return string_at(dynamic, dynamic.soname);
}

Result<ElfDynamic> Elf::dynamic() const {
  GANTRY_TRY(const auto raw, read_dynamic());
  ElfDynamic dynamic;
  if (raw.has_soname) {
    GANTRY_TRY(dynamic.soname, string_at(raw, raw.soname));
  }
  for (const auto offset : raw.needed) {
    GANTRY_TRY(dynamic.needed.emplace_back(), string_at(raw, offset));
  }
  for (const auto offset : raw.search) {
    GANTRY_TRY(dynamic.search.emplace_back(), string_at(raw, offset));
  }
  return dynamic;
}

Result<std::vector<Elf::Section>> Elf::sections() const {
  std::vector<Section> found;
  if (section_count_ == 0 || sections_at_ == 0) return found;
  if (section_count_ > kMaxElfSections) return corrupt_elf("too many sections");
  const std::size_t size = is_64bit_ ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
  GANTRY_TRY(const auto table, read(sections_at_, section_count_ * size));
  each_record<Elf64_Shdr, Elf32_Shdr>(table, is_64bit_, section_count_, [&](const auto& header) {
    found.push_back({header.sh_name, header.sh_type, header.sh_offset, header.sh_size});
  });
  return found;
}

Result<std::vector<ElfNote>> Elf::notes() const {
  std::vector<ElfNote> notes;
  GANTRY_TRY(const auto all, sections());
  std::uint64_t budget = kMaxNoteBytes;
  const auto add = [&](std::uint64_t offset, std::uint64_t size,
                       const std::string& name) -> Status {
    if (size > budget) return corrupt_elf("more than 1 MiB of notes");
    budget -= size;
    GANTRY_TRY(const auto bytes, read(offset, size));
    return append_notes(bytes, name, notes);
  };
  for (const auto& section : all) {
    if (section.type != SHT_NOTE) continue;
    std::string name;
    if (section_names_ < all.size() && section.name < all[section_names_].size &&
        all[section_names_].offset <= UINT64_MAX - section.name) {
      GANTRY_TRY(const auto text, read_some(all[section_names_].offset + section.name, 64));
      name = up_to_nul(text);
    }
    GANTRY_CHECK(add(section.offset, section.size, name));
  }
  if (!all.empty()) return notes;
  for (const auto& segment : segments_) {
    if (segment.type == PT_NOTE) GANTRY_CHECK(add(segment.offset, segment.file_size, ""));
  }
  return notes;
}

Result<std::optional<std::string>> Elf::section(std::string_view name, std::uint64_t limit) const {
  GANTRY_TRY(const auto all, sections());
  if (section_names_ >= all.size()) return std::optional<std::string>();
  const auto& table = all[section_names_];
  if (table.size > kMaxSectionNames) return corrupt_elf("the names of its sections are too long");
  GANTRY_TRY(const auto names, read(table.offset, table.size));
  const auto named = std::find_if(all.begin(), all.end(), [&](const Section& section) {
    return section.name < names.size() && names.size() - section.name > name.size() &&
           names.compare(section.name, name.size(), name) == 0 &&
           names[section.name + name.size()] == '\0';
  });
  if (named == all.end()) return std::optional<std::string>();
  if (named->type == SHT_NOBITS || named->size > limit)
    return corrupt_elf(fmt::format("section {} has no bytes or more than {}", name, limit));
  GANTRY_TRY(auto bytes, read(named->offset, named->size));
  return std::optional<std::string>(std::move(bytes));
}

Result<std::vector<ElfVersionNeed>> Elf::version_needs() const {
  // Elf32 and Elf64 agree on these records.
  static_assert(sizeof(Elf64_Verneed) == sizeof(Elf32_Verneed) &&
                sizeof(Elf64_Vernaux) == sizeof(Elf32_Vernaux));
  GANTRY_TRY(const auto dynamic, read_dynamic());
  std::vector<ElfVersionNeed> needs;
  if (dynamic.version_needs == 0) return needs;
  if (dynamic.version_need_count > kMaxStrings) return corrupt_elf("too many version needs");
  std::size_t versions = 0;
  std::uint64_t at = dynamic.version_needs;
  for (std::uint64_t i = 0; i < dynamic.version_need_count; ++i) {
    GANTRY_TRY(const auto bytes, read(at, sizeof(Elf64_Verneed)));
    const auto need = record<Elf64_Verneed>(bytes);
    auto& found = needs.emplace_back();
    GANTRY_TRY(found.file, string_at(dynamic, need.vn_file));
    std::uint64_t version_at = at + need.vn_aux;
    for (std::uint16_t j = 0; j < need.vn_cnt; ++j) {
      if (++versions > kMaxVersions) return corrupt_elf("too many version needs");
      GANTRY_TRY(const auto version_bytes, read(version_at, sizeof(Elf64_Vernaux)));
      const auto version = record<Elf64_Vernaux>(version_bytes);
      GANTRY_TRY(found.versions.emplace_back(), string_at(dynamic, version.vna_name));
      if (version.vna_next == 0) break;
      version_at += version.vna_next;
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
  }
  return needs;
}

}  // namespace gantry::loader
