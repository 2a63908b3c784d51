// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/exports.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace gantry::sim {
namespace {

struct SinceRow {
  std::string_view name;
  std::uint32_t branch;
};

// Sorting on first use would need a lock; a linear search of 400 short names is fast enough.
constexpr SinceRow kSince[] = {
#define GANTRY_NVML(branch, name, parameters) {#name, branch},
#include "gpu/abi/nvml_functions.def"
#undef GANTRY_NVML
#define GANTRY_NVML_UNSUPPORTED(branch, name) {#name, branch},
#include "sim/libnvidia-ml/unsupported.def"
#undef GANTRY_NVML_UNSUPPORTED
#define GANTRY_NVML_SETTING(branch, name, parameters) {#name, branch},
#include "sim/driver/nvml_settings.def"
#undef GANTRY_NVML_SETTING
};

// Reads and writes inside a file, never outside it.
class Bytes {
 public:
  explicit Bytes(std::string& data) : data_(data) {}

  template <typename T>
  std::optional<T> read(std::uint64_t at) const {
    if (at > data_.size() || data_.size() - at < sizeof(T)) return std::nullopt;
    T value{};
    std::memcpy(&value, data_.data() + at, sizeof value);
    return value;
  }
  template <typename T>
  void write(std::uint64_t at, const T& value) {  // at a place read before
    std::memcpy(data_.data() + at, &value, sizeof value);
  }
  std::string_view text(std::uint64_t at) const {
    if (at >= data_.size()) return {};
    const auto end = data_.find('\0', at);
    return end == std::string::npos ? std::string_view()
                                    : std::string_view(data_).substr(at, end - at);
  }

 private:
  std::string& data_;
};

struct DynamicTables {
  std::uint64_t symbols = 0, names = 0, count = 0;  // file offsets
};

std::optional<std::uint64_t> file_offset(const std::vector<Elf64_Phdr>& segments,
                                         std::uint64_t address) {
  for (const auto& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

Result<std::vector<Elf64_Phdr>> program_headers(const Bytes& file) {
  const auto header = file.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return Error(Errc::Corrupt, "not a 64-bit ELF file");
  }
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto segment = file.read<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return Error(Errc::Corrupt, "program headers outside the file");
    segments.push_back(*segment);
  }
  return segments;
}

Result<DynamicTables> dynamic_tables(const Bytes& file, const std::vector<Elf64_Phdr>& segments) {
  std::uint64_t symbols = 0;
  std::uint64_t names = 0;
  std::uint64_t hash = 0;
  for (const auto& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (std::uint64_t at = 0; at < segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = file.read<Elf64_Dyn>(segment.p_offset + at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_SYMTAB) symbols = entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
      if (entry->d_tag == DT_HASH) hash = entry->d_un.d_ptr;
    }
  }
  const auto symbols_at = file_offset(segments, symbols);
  const auto names_at = file_offset(segments, names);
  const auto hash_at = file_offset(segments, hash);
  if (!symbols_at || !names_at || !hash_at) return Error(Errc::Corrupt, "no dynamic symbol table");
  const auto chains = file.read<std::uint32_t>(*hash_at + 4);  // one for each symbol
  if (!chains) return Error(Errc::Corrupt, "hash table outside the file");
  return DynamicTables{*symbols_at, *names_at, *chains};
}

}  // namespace

Result<std::size_t> hide_functions(std::string& library,
                                   const std::function<bool(std::string_view)>& hidden) {
  Bytes file(library);
  GANTRY_TRY(const auto segments, program_headers(file));
  GANTRY_TRY(const auto tables, dynamic_tables(file, segments));
  std::size_t count = 0;
  for (std::uint64_t i = 1; i < tables.count; ++i) {
    const auto at = tables.symbols + i * sizeof(Elf64_Sym);
    auto symbol = file.read<Elf64_Sym>(at);
    if (!symbol) return Error(Errc::Corrupt, "symbol table outside the file");
    if (symbol->st_shndx == SHN_UNDEF || !hidden(file.text(tables.names + symbol->st_name)))
      continue;
    // The loader skips symbols without a section and without a value; the hash tables may stay.
    symbol->st_shndx = SHN_UNDEF;
    symbol->st_value = 0;
    symbol->st_size = 0;
    file.write(at, *symbol);
    ++count;
  }
  return count;
}

Result<std::size_t> hide_newer_nvml_functions(std::string& library, std::uint32_t branch) {
  return hide_functions(library, [branch](std::string_view name) {
    const auto* row = std::find_if(std::begin(kSince), std::end(kSince),
                                   [&](const SinceRow& since) { return since.name == name; });
    return row != std::end(kSince) && row->branch > branch;
  });
}

}  // namespace gantry::sim
