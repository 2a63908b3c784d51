// SPDX-License-Identifier: Apache-2.0
#include "container/image/tar_reader.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::image {
namespace {

constexpr std::size_t kHeader = 512;
constexpr std::uint64_t kMostContent = std::uint64_t{1} << 50U;
constexpr std::uint64_t kMostExtra = std::uint64_t{1} << 20U;  // of a long name or a pax header
constexpr int kMostOverrides = 8;                              // headers in front of one member
constexpr int kMostSparseBlocks = 4096;

struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kType{156, 1}, kTarget{157, 100},
    kMagic{257, 6}, kPrefix{345, 155};

std::string_view raw(std::string_view block, Field field) {
  return block.substr(field.at, field.size);
}

std::string_view text(std::string_view block, Field field) {
  const auto all = raw(block, field);
  return all.substr(0, all.find('\0'));
}

// Octal digits between spaces and zeros, or the binary form of GNU tar for large numbers.
std::optional<std::uint64_t> number(std::string_view field) {
  if ((static_cast<unsigned char>(field.front()) & 0x80U) != 0) {
    std::uint64_t value = static_cast<unsigned char>(field.front()) & 0x7FU;
    for (const char c : field.substr(1)) {
      if (value >= kMostContent) return std::nullopt;
      value = (value << 8U) | static_cast<unsigned char>(c);
    }
    return value;
  }
  const auto digits = trim(field.substr(0, field.find('\0')));
  return digits.empty() ? std::optional<std::uint64_t>(0) : parse_u64(digits, 8);
}

// The sum of all bytes of the header, with spaces in place of the sum itself.
bool has_checksum(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return number(raw(block, kChecksum)) == sum;
}

MemberKind member_kind(char type) {
  switch (type) {
    case '0':
    case '\0':
    case '7':  // contiguous, which is a file as others
    case 'S': return MemberKind::File;
    case '1': return MemberKind::HardLink;
    case '2': return MemberKind::Symlink;
    case '5': return MemberKind::Directory;
    default: return MemberKind::Other;
  }
}

Error damaged(std::string_view what) {
  return Error(Errc::Corrupt, fmt::format("it is not a tar archive, or is damaged: {}", what));
}

}  // namespace

bool is_tar(std::string_view start) {
  return start.size() >= kHeader && has_checksum(start.substr(0, kHeader));
}

Result<bool> TarReader::read_block(Block& block) {
  GANTRY_TRY(const auto got, stream_.read(block));
  if (got != 0 && got != kBlock) return damaged("it ends in the middle of a header");
  GANTRY_CHECK(budget_.take_bytes(got));
  return got == kBlock;
}

Status TarReader::finish_member() {
  GANTRY_CHECK(budget_.take_bytes(left_ + padding_));
  GANTRY_CHECK(stream_.skip(left_));
  left_ = 0;
  // The padding of the last member may be missing at the end of an archive without end blocks.
  GANTRY_TRY(const auto more, stream_.peek(1));
  if (!more.empty()) GANTRY_CHECK(stream_.skip(padding_));
  padding_ = 0;
  return {};
}

Result<std::size_t> TarReader::read(std::span<char> to) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, to.size()));
  GANTRY_TRY(const auto got, stream_.read(to.first(count)));
  if (got < count) return Error(Errc::Corrupt, "it ends in the middle of a file");
  GANTRY_CHECK(budget_.take_bytes(got));
  left_ -= got;
  return got;
}

ByteStream TarReader::content() {
  return ByteStream([this](std::span<char> to) { return read(to); });
}

Result<std::string> TarReader::read_extra(std::uint64_t size) {
  if (size > kMostExtra) return damaged(fmt::format("a name of {}", human_bytes(size)));
  std::string extra(static_cast<std::size_t>(size), '\0');
  left_ = size;
  GANTRY_CHECK(read(extra));
  return extra;
}

// Records "LENGTH KEY=VALUE\n", where LENGTH counts the whole record.
Status TarReader::read_pax(std::uint64_t size, Overrides& overrides) {
  GANTRY_TRY(const auto all, read_extra(size));
  std::string_view records = all;
  while (!records.empty() && records.front() != '\0') {
    const auto space = records.find(' ');
    const auto length =
        space == std::string_view::npos ? std::nullopt : parse_u64(records.substr(0, space));
    if (!length || *length <= space + 1 || *length > records.size())
      return damaged("a pax header with a wrong length");
    const auto record = records.substr(space + 1, *length - space - 2);
    const auto equals = record.find('=');
    if (equals == std::string_view::npos) return damaged("a pax header without a value");
    const auto key = record.substr(0, equals);
    const auto value = record.substr(equals + 1);
    if (key == "path") overrides.name = std::string(value);
    if (key == "linkpath") overrides.target = std::string(value);
    if (key == "size") {
      overrides.size = parse_u64(value);
      if (!overrides.size) return damaged("a pax header with a wrong size");
    }
    records.remove_prefix(*length);
  }
  return {};
}

// True if the header only changes the member that follows it.
Result<bool> TarReader::read_override(const Block& block, std::uint64_t size,
                                      Overrides& overrides) {
  const auto type = block[kType.at];
  if (type == 'x') {
    GANTRY_CHECK(read_pax(size, overrides));
    return true;
  }
  if (type == 'g') {  // for all members; images have comments there
    GANTRY_CHECK(read_extra(size));
    return true;
  }
  if (type != 'L' && type != 'K') return false;
  GANTRY_TRY(auto name, read_extra(size));
  name.resize(std::min(name.find('\0'), name.size()));
  (type == 'L' ? overrides.name : overrides.target) = std::move(name);
  return true;
}

// GNU tar's old form of a file with holes has more of its map in blocks behind the header.
Status TarReader::skip_sparse_map(const Block& block) {
  constexpr std::size_t kMoreInHeader = 482;
  constexpr std::size_t kMoreInBlock = 504;
  bool more = block[kMoreInHeader] != '\0';
  for (int blocks = 0; more; ++blocks) {
    Block map{};
    GANTRY_TRY(const bool read, read_block(map));
    if (!read || blocks == kMostSparseBlocks) return damaged("a file with holes without an end");
    more = map[kMoreInBlock] != '\0';
  }
  return {};
}

Result<TarMember> TarReader::member_of(const Block& block, std::uint64_t size,
                                       Overrides overrides) {
  const std::string_view header(block.data(), block.size());
  TarMember member{.kind = member_kind(block[kType.at])};
  member.name = std::string(text(header, kName));
  // Only POSIX's form has the prefix; GNU tar's has other fields there.
  const auto prefix = text(header, kPrefix);
  if (raw(header, kMagic) == std::string_view("ustar\0", 6) && !prefix.empty())
    member.name = fmt::format("{}/{}", prefix, member.name);
  if (overrides.name) member.name = *std::move(overrides.name);
  if (member.kind == MemberKind::File && member.name.ends_with('/'))
    member.kind = MemberKind::Directory;  // as tar wrote it before POSIX
  member.target =
      overrides.target ? *std::move(overrides.target) : std::string(text(header, kTarget));
  if (block[kType.at] == 'S') GANTRY_CHECK(skip_sparse_map(block));
  // Links and directories have no content, whatever their size says.
  const bool has_content = member.kind == MemberKind::File || member.kind == MemberKind::Other;
  left_ = has_content ? overrides.size.value_or(size) : 0;
  if (left_ > kMostContent) return damaged(fmt::format("a file of {}", human_bytes(left_)));
  padding_ = (kBlock - left_ % kBlock) % kBlock;
  member.size = member.kind == MemberKind::File ? left_ : 0;
  return member;
}

Result<std::optional<TarMember>> TarReader::next() {
  GANTRY_CHECK(finish_member());
  Overrides overrides;
  for (int headers = 0; headers <= kMostOverrides; ++headers) {
    Block block{};
    GANTRY_TRY(const bool read, read_block(block));
    const bool empty = std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; });
    if (!read || empty) return std::optional<TarMember>();
    const std::string_view header(block.data(), block.size());
    if (!has_checksum(header)) return damaged("a header with a wrong checksum");
    const auto size = number(raw(header, kSize));
    if (!size) return damaged("a header with a wrong size");
    GANTRY_TRY(const bool only_changes, read_override(block, *size, overrides));
    if (!only_changes) {
      GANTRY_TRY(auto member, member_of(block, *size, std::move(overrides)));
      return std::optional(std::move(member));
    }
    padding_ = (kBlock - *size % kBlock) % kBlock;
    GANTRY_CHECK(finish_member());
  }
  return damaged("too many headers in front of one file");
}

}  // namespace gantry::image
