// SPDX-License-Identifier: Apache-2.0
#include "container/image/tar_reader.hpp"

#include "container/image/archive_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::image {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ByteStream stream_of(std::string_view& bytes) {
  return ByteStream([&bytes](std::span<char> to) -> Result<std::size_t> {
    // Odd pieces, as a pipe gives them.
    const auto count = std::min({to.size(), bytes.size(), std::size_t{700}});
    bytes.copy(to.data(), count);
    bytes.remove_prefix(count);
    return count;
  });
}

struct Listing {
  std::vector<std::string> members;  // "file etc/passwd 4 text"
  std::string error;
};

std::string shown(const TarMember& member, std::string_view content) {
  switch (member.kind) {
    case MemberKind::File: return fmt::format("file {} {}", member.name, content);
    case MemberKind::Directory: return fmt::format("directory {}", member.name);
    case MemberKind::Symlink: return fmt::format("symlink {} {}", member.name, member.target);
    case MemberKind::HardLink: return fmt::format("link {} {}", member.name, member.target);
    case MemberKind::Other: break;
  }
  return fmt::format("other {}", member.name);
}

Listing listing(std::string_view bytes, const ReadLimits& limits = {}) {
  auto stream = stream_of(bytes);
  ReadBudget budget(limits);
  TarReader tar(stream, budget);
  Listing found;
  while (true) {
    auto member = tar.next();
    if (!member.ok()) return {found.members, member.error().text()};
    if (!*member) return found;
    std::string content(4, '\0');
    const auto got = tar.read(content);
    if (!got.ok()) return {found.members, got.error().text()};
    found.members.push_back(shown(**member, content.substr(0, *got)));
  }
}

std::string pax(std::string_view key, std::string_view value) {
  const auto rest = fmt::format(" {}={}\n", key, value);
  for (auto length = rest.size();; ++length) {
    auto record = fmt::format("{}{}", length, rest);
    if (record.size() == length) return record;
  }
}

TEST(TarReader, ReadsMembersAndSkipsTheirContent) {
  const auto tar = TarBytes()
                       .directory("etc/")
                       .file("etc/passwd", std::string(2000, 'x'))
                       .symlink("lib", "usr/lib")
                       .hard_link("b", "etc/passwd")
                       .member('6', "fifo", "", 0, "");
  EXPECT_THAT(listing(tar.bytes()).members,
              ElementsAre("directory etc/", "file etc/passwd xxxx", "symlink lib usr/lib",
                          "link b etc/passwd", "other fifo"));
  EXPECT_EQ(listing(tar.bytes()).error, "");
  EXPECT_EQ(listing(tar.unfinished()).error, "") << "some programs write no end blocks";
}

TEST(TarReader, LongNamesOfGnuTarAndPaxReplaceTheHeaders) {
  const std::string name(300, 'n');
  const auto record = pax("path", "from-pax") + pax("linkpath", "to-pax");
  const auto tar = TarBytes()
                       .member('L', "././@LongLink", "", name.size(), name)
                       .file("short", "1")
                       .member('x', "PaxHeaders/x", "", record.size(), record)
                       .symlink("short", "short")
                       .file("own", "2");
  EXPECT_THAT(listing(tar.bytes()).members,
              ElementsAre("file " + name + " 1", "symlink from-pax to-pax", "file own 2"));
}

TEST(TarReader, ASizeOfPaxCounts) {
  const auto record = pax("size", "3");
  const auto tar = TarBytes()
                       .member('x', "PaxHeaders/x", "", record.size(), record)
                       .member('0', "large", "", 0, "abc")
                       .file("next");
  EXPECT_THAT(listing(tar.bytes()).members, ElementsAre("file large abc", "file next "));
}

TEST(TarReader, DamageIsNamed) {
  const auto good = TarBytes().file("a", "1").file("b", std::string(3000, 'x')).bytes();
  EXPECT_THAT(listing(good.substr(0, 700)).error, HasSubstr("ends in the middle of a"));
  EXPECT_THAT(listing(good.substr(0, 2000)).error, HasSubstr("ends in the middle of a file"));
  auto wrong = good;
  wrong[1024] ^= 1;
  EXPECT_THAT(listing(wrong).error, HasSubstr("wrong checksum"));
  EXPECT_THAT(listing(std::string(2048, 'x')).error, HasSubstr("not a tar archive"));
}

TEST(TarReader, HostileHeadersAreCorrupt) {
  const auto error_of = [](const TarBytes& tar) { return listing(tar.bytes()).error; };
  EXPECT_THAT(error_of(TarBytes().member('L', "n", "", 2U << 20U, "")), HasSubstr("a name of"));
  EXPECT_THAT(error_of(TarBytes().member('x', "n", "", 9, "99 path=x")), HasSubstr("wrong length"));
  EXPECT_THAT(error_of(TarBytes().member('x', "n", "", 9, "9 size=x\n")), HasSubstr("wrong size"));
  EXPECT_THAT(error_of(TarBytes().member('x', "n", "", 7, "7 path\n")),
              HasSubstr("without a value"));
  TarBytes endless;
  for (int i = 0; i < 20; ++i) endless.member('L', "n", "", 1, "n");
  EXPECT_THAT(error_of(endless), HasSubstr("too many headers"));
  // 2^62 bytes in GNU tar's binary form.
  auto huge = TarBytes().file("huge").bytes();
  huge.replace(124, 12, std::string_view("\x80\0\0\0\x40\0\0\0\0\0\0\0", 12));
  EXPECT_THAT(listing(huge).error, HasSubstr("wrong"));
}

TEST(TarReader, MoreBytesThanTheLimitAreTooMany) {
  const auto tar = TarBytes().file("a", std::string(5000, 'x')).bytes();
  EXPECT_THAT(listing(tar, {.bytes = 4096}).error, HasSubstr("unpacks to more than 4.0 KiB"));
}

}  // namespace
}  // namespace gantry::image
