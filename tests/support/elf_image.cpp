// SPDX-License-Identifier: Apache-2.0
#include "support/elf_image.hpp"

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace gantry::test {
namespace {

struct Elf64 {
  using Header = Elf64_Ehdr;
  using Segment = Elf64_Phdr;
  using Entry = Elf64_Dyn;
  using Section = Elf64_Shdr;
  static constexpr unsigned char kClass = ELFCLASS64;
  static constexpr std::uint16_t kMachine = EM_X86_64;
};
struct Elf32 {
  using Header = Elf32_Ehdr;
  using Segment = Elf32_Phdr;
  using Entry = Elf32_Dyn;
  using Section = Elf32_Shdr;
  static constexpr unsigned char kClass = ELFCLASS32;
  static constexpr std::uint16_t kMachine = EM_386;
};

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string note_bytes(const ElfImage& image) {
  if (image.note_owner.empty()) return {};
  std::string out;
  append(out, Elf64_Nhdr{static_cast<std::uint32_t>(image.note_owner.size() + 1),
                         static_cast<std::uint32_t>(image.note.size()), 1});
  out += image.note_owner;
  out.append(1 + (3 - image.note_owner.size() % 4), '\0');
  return out + image.note;
}

// At the end of the file: the names of the sections, then three sections: the null section, the
// note and the names.
template <class E>
void add_note_section(std::string& out, const std::string& name, std::size_t note_at,
                      std::size_t note_size) {
  const std::size_t names_at = out.size();
  out.push_back('\0');
  out.append(name).push_back('\0');
  const std::size_t names_size = out.size() - names_at;
  out.resize((out.size() + 7) & ~std::size_t{7}, '\0');
  typename E::Header header{};
  std::memcpy(&header, out.data(), sizeof header);
  header.e_shoff = static_cast<decltype(header.e_shoff)>(out.size());
  header.e_shentsize = sizeof(typename E::Section);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  std::memcpy(out.data(), &header, sizeof header);
  const auto section = [&](std::uint32_t type, std::uint32_t named, std::size_t at,
                           std::size_t size) {
    typename E::Section s{};
    s.sh_type = type;
    s.sh_name = named;
    s.sh_offset = static_cast<decltype(s.sh_offset)>(at);
    s.sh_size = static_cast<decltype(s.sh_size)>(size);
    s.sh_addralign = 4;
    append(out, s);
  };
  section(SHT_NULL, 0, 0, 0);
  section(SHT_NOTE, 1, note_at, note_size);
  section(SHT_STRTAB, 0, names_at, names_size);
}

// Layout: header, three program headers, dynamic section, strings, note. Addresses equal offsets.
template <class E>
std::string build(const ElfImage& image) {
  std::string strings(1, '\0');
  std::vector<std::pair<long, std::size_t>> named;
  const auto add = [&](long tag, const std::string& text) {
    named.emplace_back(tag, strings.size());
    strings.append(text).push_back('\0');
  };
  if (!image.soname.empty()) add(DT_SONAME, image.soname);
  for (const auto& name : image.needed) add(DT_NEEDED, name);

  const auto note = note_bytes(image);
  const std::size_t dynamic_at = sizeof(typename E::Header) + 3 * sizeof(typename E::Segment);
  const std::size_t dynamic_size = (named.size() + 3) * sizeof(typename E::Entry);
  const std::size_t strings_at = dynamic_at + dynamic_size;
  const std::size_t note_at = (strings_at + strings.size() + 3) & ~std::size_t{3};
  const std::size_t end = note_at + note.size();

  typename E::Header header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = E::kClass;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = E::kMachine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(typename E::Segment);
  header.e_phnum = 3;
  std::string out;
  append(out, header);
  const auto segment = [&](std::uint32_t type, std::size_t at, std::size_t size) {
    typename E::Segment s{};
    s.p_type = type;
    s.p_flags = PF_R;
    s.p_offset = s.p_vaddr = s.p_paddr = static_cast<decltype(s.p_offset)>(at);
    s.p_filesz = s.p_memsz = static_cast<decltype(s.p_filesz)>(size);
    s.p_align = type == PT_LOAD ? 4096 : 4;
    append(out, s);
  };
  segment(PT_LOAD, 0, end);
  segment(PT_DYNAMIC, dynamic_at, dynamic_size);
  segment(note.empty() ? PT_NULL : PT_NOTE, note_at, note.size());
  const auto entry = [&](long tag, std::size_t value) {
    typename E::Entry e{};
    e.d_tag = static_cast<decltype(e.d_tag)>(tag);
    e.d_un.d_val = static_cast<decltype(e.d_un.d_val)>(value);
    append(out, e);
  };
  for (const auto& [tag, offset] : named) entry(tag, offset);
  entry(DT_STRTAB, strings_at);
  entry(DT_STRSZ, strings.size());
  entry(DT_NULL, 0);
  out += strings;
  out.resize(note_at, '\0');
  out += note;
  if (!image.note_section.empty()) {
    add_note_section<E>(out, image.note_section, note_at, note.size());
  }
  return out;
}

}  // namespace

std::string elf_image(const ElfImage& image) {
  return image.is_32bit ? build<Elf32>(image) : build<Elf64>(image);
}

}  // namespace gantry::test
