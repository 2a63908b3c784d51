// SPDX-License-Identifier: Apache-2.0
// Reads a tar archive from front to back: ustar, the long names of GNU tar, and pax headers. The
// archive may be hostile: names and sizes are bounded, damage is Corrupt. A name may still be
// absolute or contain "..": the caller decides what it means.
#pragma once

#include "base/core/result.hpp"
#include "container/image/byte_stream.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace gantry::image {

enum class MemberKind : std::uint8_t { File, Directory, Symlink, HardLink, Other };

struct TarMember {
  MemberKind kind = MemberKind::File;
  std::string name;
  std::string target;      // of a link
  std::uint64_t size = 0;  // of its content; 0 if it is not a file
};

class TarReader {
 public:
  // Both must outlive the reader.
  TarReader(ByteStream& stream, ReadBudget& budget) : stream_(stream), budget_(budget) {}

  // Skips what is left of the member before. nullopt at the archive's end; an archive may also end
  // without the two empty blocks, as some programs write it.
  Result<std::optional<TarMember>> next();

  // The content of the current member; fewer bytes than asked for only at its end.
  Result<std::size_t> read(std::span<char> to);
  // The same as a stream, which is valid until next().
  ByteStream content();

 private:
  static constexpr std::size_t kBlock = 512;
  using Block = std::array<char, kBlock>;

  struct Overrides {  // of a long name or a pax header, for the next member
    std::optional<std::string> name;
    std::optional<std::string> target;
    std::optional<std::uint64_t> size;
  };

  Result<bool> read_block(Block& block);
  Status finish_member();
  Result<std::string> read_extra(std::uint64_t size);
  Status read_pax(std::uint64_t size, Overrides& overrides);
  Result<bool> read_override(const Block& block, std::uint64_t size, Overrides& overrides);
  Result<TarMember> member_of(const Block& block, std::uint64_t size, Overrides overrides);
  Status skip_sparse_map(const Block& block);

  ByteStream& stream_;
  ReadBudget& budget_;
  std::uint64_t left_ = 0;     // of the current member's content
  std::uint64_t padding_ = 0;  // behind it
};

// Is this the first block of a tar archive?
bool is_tar(std::string_view start);

}  // namespace gantry::image
