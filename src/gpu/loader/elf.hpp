// SPDX-License-Identifier: Apache-2.0
// Reads the headers of a library, program or kernel module: class, machine, SONAME, NEEDED, notes,
// symbol version needs, single sections. 32- and 64-bit, little endian. The file may be hostile or
// change while it is read: everything is read by pread with limits, damage is Corrupt, and no size
// in the file alone decides an allocation.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::loader {

inline constexpr std::uint16_t kMachineI386 = 3;
inline constexpr std::uint16_t kMachineArm = 40;
inline constexpr std::uint16_t kMachineAmd64 = 62;
inline constexpr std::uint16_t kMachineAarch64 = 183;

struct ElfDynamic {
  std::string soname;               // "" when none
  std::vector<std::string> needed;  // in order
  std::vector<std::string> search;  // RPATH and RUNPATH, as written
  bool operator==(const ElfDynamic&) const = default;
};

struct ElfNote {
  std::string section;  // ".note.ABI-tag"; "" when found through a program header
  std::string owner;    // "GNU"
  std::uint32_t type = 0;
  std::string description;  // raw bytes
  bool operator==(const ElfNote&) const = default;
};

struct ElfVersionNeed {
  std::string file;                   // "libc.so.6"
  std::vector<std::string> versions;  // "GLIBC_2.17"
  bool operator==(const ElfVersionNeed&) const = default;
};

// A view on an open ELF file; the descriptor or the bytes must outlive it. Each query reads only
// what it needs: class, machine and SONAME of a library of any size take three small reads.
class Elf {
 public:
  static Result<Elf> open(int fd);
  static Result<Elf> open(std::string_view bytes);

  bool is_64bit() const { return is_64bit_; }
  std::uint16_t machine() const { return machine_; }
  std::uint16_t type() const { return type_; }  // ET_DYN is 3, ET_REL is 1

  Result<ElfDynamic> dynamic() const;
  Result<std::string> soname() const;          // "" when none; cheaper than dynamic()
  Result<std::vector<ElfNote>> notes() const;  // from sections if there are any, else from segments
  Result<std::vector<ElfVersionNeed>> version_needs() const;
  // The first section of this name; nullopt if there is none. Corrupt if it has more than `limit`
  // bytes.
  Result<std::optional<std::string>> section(std::string_view name, std::uint64_t limit) const;

 private:
  struct Segment {
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
    std::uint64_t address = 0;
    std::uint64_t file_size = 0;
  };
  struct Section {
    std::uint32_t name = 0;
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  struct Dynamic {  // the entries we use; addresses are converted to file offsets
    std::uint64_t strings = 0, strings_size = 0;
    std::uint64_t soname = 0;
    bool has_soname = false;
    std::vector<std::uint64_t> needed, search;
    std::uint64_t version_needs = 0, version_need_count = 0;
  };

  Elf(int fd, std::string_view bytes) : fd_(fd), bytes_(bytes) {}
  static Result<Elf> opened(Elf elf);
  Status read_headers();
  Status read_segments(std::string_view start);
  Result<std::vector<Section>> sections() const;
  Result<Dynamic> read_dynamic() const;
  Result<std::uint64_t> offset_of(std::uint64_t address) const;
  Result<std::string> string_at(const Dynamic& dynamic, std::uint64_t offset) const;

  // Exactly `size` bytes, or Corrupt.
  Result<std::string> read(std::uint64_t offset, std::uint64_t size) const;
  // Up to `size` bytes; fewer at the end of the file.
  Result<std::string> read_some(std::uint64_t offset, std::uint64_t size) const;

  int fd_ = -1;
  std::string_view bytes_;
  bool is_64bit_ = false;
  std::uint16_t machine_ = 0;
  std::uint16_t type_ = 0;
  std::uint16_t section_names_ = 0;
  std::uint16_t section_count_ = 0;
  std::uint64_t sections_at_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace gantry::loader
