// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/elf_writer.hpp"

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace gantry::sim {
namespace {

struct Elf64 {
  using Ehdr = Elf64_Ehdr;
  using Phdr = Elf64_Phdr;
  using Shdr = Elf64_Shdr;
  using Dyn = Elf64_Dyn;
  using Sym = Elf64_Sym;
  using Word = std::uint64_t;
  static constexpr unsigned char kClass = ELFCLASS64;
  static constexpr std::uint16_t kMachine = EM_X86_64;
};

struct Elf32 {
  using Ehdr = Elf32_Ehdr;
  using Phdr = Elf32_Phdr;
  using Shdr = Elf32_Shdr;
  using Dyn = Elf32_Dyn;
  using Sym = Elf32_Sym;
  using Word = std::uint32_t;
  static constexpr unsigned char kClass = ELFCLASS32;
  static constexpr std::uint16_t kMachine = EM_386;
};

template <class T>
void append(std::string& file, const T& value) {
  file.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
void overwrite(std::string& file, std::size_t offset, const T& value) {
  std::memcpy(file.data() + offset, &value, sizeof value);
}

void align(std::string& file, std::size_t to) {
  file.resize((file.size() + to - 1) / to * to, '\0');
}

template <class E>
typename E::Ehdr header(std::uint16_t type) {
  typename E::Ehdr h{};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = E::kClass;
  h.e_ident[EI_DATA] = ELFDATA2LSB;
  h.e_ident[EI_VERSION] = EV_CURRENT;
  h.e_type = type;
  h.e_machine = E::kMachine;
  h.e_version = EV_CURRENT;
  h.e_ehsize = sizeof(typename E::Ehdr);
  h.e_phentsize = sizeof(typename E::Phdr);
  h.e_shentsize = sizeof(typename E::Shdr);
  return h;
}

// Sections are collected while the file grows; their table goes last.
template <class E>
class Sections {
 public:
  Sections() { table_.push_back({}); }

  std::uint32_t add(std::string_view name, std::uint32_t type, std::size_t offset, std::size_t size,
                    std::uint32_t flags, std::uint32_t link, std::size_t entry) {
    typename E::Shdr s{};
    s.sh_name = static_cast<std::uint32_t>(names_.size());
    names_.append(name).push_back('\0');
    s.sh_type = type;
    s.sh_flags = flags;
    s.sh_addr = static_cast<typename E::Word>((flags & SHF_ALLOC) != 0 ? offset : 0);
    s.sh_offset = static_cast<typename E::Word>(offset);
    s.sh_size = static_cast<typename E::Word>(size);
    s.sh_link = link;
    s.sh_info = type == SHT_DYNSYM ? 1 : 0;  // first symbol that is not local
    s.sh_addralign = entry == 0 ? 1 : sizeof(typename E::Word);
    s.sh_entsize = static_cast<typename E::Word>(entry);
    table_.push_back(s);
    return static_cast<std::uint32_t>(table_.size() - 1);
  }

  void finish(std::string& file, typename E::Ehdr& h) {
    const std::size_t at = file.size();
    const std::size_t own_name = names_.size();
    names_.append(".shstrtab").push_back('\0');
    file += names_;
    typename E::Shdr s{};
    s.sh_name = static_cast<std::uint32_t>(own_name);
    s.sh_type = SHT_STRTAB;
    s.sh_offset = static_cast<typename E::Word>(at);
    s.sh_size = static_cast<typename E::Word>(names_.size());
    s.sh_addralign = 1;
    table_.push_back(s);
    align(file, sizeof(typename E::Word));
    h.e_shoff = static_cast<typename E::Word>(file.size());
    h.e_shnum = static_cast<std::uint16_t>(table_.size());
    h.e_shstrndx = static_cast<std::uint16_t>(table_.size() - 1);
    for (const auto& section : table_) append(file, section);
  }

 private:
  std::string names_ = std::string(1, '\0');
  std::vector<typename E::Shdr> table_;
};

template <class E>
std::string make_shared_object(std::string_view soname) {
  using Word = typename E::Word;
  std::string file(sizeof(typename E::Ehdr) + 3 * sizeof(typename E::Phdr), '\0');
  Sections<E> sections;

  align(file, sizeof(Word));
  const std::size_t hash = file.size();
  for (const std::uint32_t word : std::array<std::uint32_t, 4>{1, 1, 0, 0}) append(file, word);
  align(file, sizeof(Word));
  const std::size_t symbols = file.size();
  append(file, typename E::Sym{});
  const std::size_t strings = file.size();
  file.push_back('\0');
  const auto soname_at = static_cast<Word>(file.size() - strings);
  file.append(soname).push_back('\0');
  const auto libc_at = static_cast<Word>(file.size() - strings);
  file.append("libc.so.6").push_back('\0');
  const std::size_t strings_size = file.size() - strings;
  align(file, sizeof(Word));

  const std::size_t dynamic = file.size();
  auto entry = [&](long tag, std::size_t value) {
    typename E::Dyn d{};
    d.d_tag = static_cast<decltype(d.d_tag)>(tag);
    d.d_un.d_val = static_cast<Word>(value);
    append(file, d);
  };
  entry(DT_NEEDED, libc_at);
  entry(DT_SONAME, soname_at);
  entry(DT_HASH, hash);
  entry(DT_STRTAB, strings);
  entry(DT_SYMTAB, symbols);
  entry(DT_STRSZ, strings_size);
  entry(DT_SYMENT, sizeof(typename E::Sym));
  entry(DT_NULL, 0);
  const std::size_t dynamic_size = file.size() - dynamic;

  const auto dynstr = sections.add(".dynstr", SHT_STRTAB, strings, strings_size, SHF_ALLOC, 0, 0);
  const auto dynsym = sections.add(".dynsym", SHT_DYNSYM, symbols, sizeof(typename E::Sym),
                                   SHF_ALLOC, dynstr, sizeof(typename E::Sym));
  sections.add(".hash", SHT_HASH, hash, 16, SHF_ALLOC, dynsym, 4);
  sections.add(".dynamic", SHT_DYNAMIC, dynamic, dynamic_size, SHF_ALLOC | SHF_WRITE, dynstr,
               sizeof(typename E::Dyn));
  auto h = header<E>(ET_DYN);
  h.e_phoff = sizeof(typename E::Ehdr);
  h.e_phnum = 3;
  const std::size_t loaded = file.size();
  sections.finish(file, h);
  overwrite(file, 0, h);

  // Writable, because older loaders adjust the dynamic section in place.
  typename E::Phdr load{};
  load.p_type = PT_LOAD;
  load.p_flags = PF_R | PF_W;
  load.p_filesz = load.p_memsz = static_cast<Word>(loaded);
  load.p_align = 4096;
  typename E::Phdr dyn{};
  dyn.p_type = PT_DYNAMIC;
  dyn.p_flags = PF_R | PF_W;
  dyn.p_offset = dyn.p_vaddr = dyn.p_paddr = static_cast<Word>(dynamic);
  dyn.p_filesz = dyn.p_memsz = static_cast<Word>(dynamic_size);
  dyn.p_align = sizeof(Word);
  typename E::Phdr stack{};
  stack.p_type = PT_GNU_STACK;
  stack.p_flags = PF_R | PF_W;
  overwrite(file, sizeof(typename E::Ehdr), load);
  overwrite(file, sizeof(typename E::Ehdr) + sizeof load, dyn);
  overwrite(file, sizeof(typename E::Ehdr) + 2 * sizeof load, stack);
  return file;
}

}  // namespace

std::string shared_object(std::string_view soname, ElfClass bits) {
  return bits == ElfClass::Bits64 ? make_shared_object<Elf64>(soname)
                                  : make_shared_object<Elf32>(soname);
}

std::string static_program(std::string_view line) {
  constexpr std::uint64_t kBase = 0x400000;
  const std::string text = std::string(line) + "\n";
  // write(1, text, length); exit_group(0)
  std::string code(
      "\xb8\x01\x00\x00\x00"          // mov eax, 1
      "\xbf\x01\x00\x00\x00"          // mov edi, 1
      "\x48\x8d\x35\x13\x00\x00\x00"  // lea rsi, [rip + 19]
      "\xba\x00\x00\x00\x00"          // mov edx, length
      "\x0f\x05"                      // syscall
      "\xb8\xe7\x00\x00\x00"          // mov eax, 231
      "\x31\xff"                      // xor edi, edi
      "\x0f\x05"                      // syscall
      "\x90\x90\x90",                 // padding
      36);
  overwrite(code, 18, static_cast<std::uint32_t>(text.size()));
  const std::size_t start = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  auto h = header<Elf64>(ET_EXEC);
  h.e_entry = kBase + start;
  h.e_phoff = sizeof(Elf64_Ehdr);
  h.e_phnum = 1;
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_flags = PF_R | PF_X;
  load.p_vaddr = load.p_paddr = kBase;
  load.p_filesz = load.p_memsz = start + code.size() + text.size();
  load.p_align = 4096;
  std::string file;
  append(file, h);
  append(file, load);
  return file + code + text;
}

std::string kernel_object(const std::vector<std::pair<std::string, std::string>>& modinfo) {
  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::string info;
  for (const auto& [key, value] : modinfo)
    info.append(key).append("=").append(value).push_back('\0');
  const std::size_t at = file.size();
  file += info;
  Sections<Elf64> sections;
  sections.add(".modinfo", SHT_PROGBITS, at, info.size(), SHF_ALLOC, 0, 0);
  auto h = header<Elf64>(ET_REL);
  sections.finish(file, h);
  overwrite(file, 0, h);
  return file;
}

}  // namespace gantry::sim
