// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/ld_cache.hpp"

#include "gpu/loader/ld_cache_format_internal.hpp"

#include <gmock/gmock.h>

#include <cstring>

namespace gantry::loader {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

LdCacheEntry entry(std::string_view name, std::string_view directory,
                   std::uint32_t flags = kAmd64) {
  return {.name = std::string(name),
          .path = std::string(directory) + "/" + std::string(name),
          .flags = flags};
}

std::string written(std::vector<LdCacheEntry> entries, LdCacheFormat format = LdCacheFormat::New) {
  return *serialize_ld_cache(
      {.entries = std::move(entries), .format = format, .generator = "test"});
}

void put_u32(std::string& bytes, std::size_t at, std::uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST(CompareNames, TreatsDigitsAsNumbers) {
  EXPECT_GT(compare_library_names("libfoo.so.10", "libfoo.so.9"), 0);
  EXPECT_LT(compare_library_names("libfoo.so.1", "libfoo.so.10"), 0);
  EXPECT_EQ(compare_library_names("libfoo.so.1", "libfoo.so.01"), 0);
  EXPECT_GT(compare_library_names("lib1", "liba"), 0);  // a digit is above any letter
  EXPECT_GT(compare_library_names("libfoo.so.1", "libfoo.so"), 0);
}

TEST(CompareNames, HasOneOrderForNumbersThatDoNotFit) {
  const std::string a(3, '2');
  const std::string b(16, '2');
  const std::string c(27, '2');
  const bool ab = compare_library_names(a, b) < 0;
  const bool bc = compare_library_names(b, c) < 0;
  const bool ca = compare_library_names(c, a) < 0;
  EXPECT_FALSE(ab == bc && bc == ca) << "a cycle is not an order";
}

TEST(LdCache, ComesBackAsItWasWritten) {
  const auto cache =
      *parse_ld_cache(written({entry("libcuda.so.1", "/opt"), entry("liba.so", "/usr/lib")}));
  EXPECT_EQ(cache.format, LdCacheFormat::New);
  EXPECT_EQ(cache.generator, "test");
  EXPECT_THAT(cache.entries,
              ElementsAre(entry("libcuda.so.1", "/opt"), entry("liba.so", "/usr/lib")));
}

TEST(LdCache, SortsDownwardsAsTheLoaderSearches) {
  const auto cache = *parse_ld_cache(
      written({entry("liba.so.2", "/d"), entry("libz.so", "/d"), entry("liba.so.10", "/d")}));
  EXPECT_THAT(cache.entries, ElementsAre(Field(&LdCacheEntry::name, "libz.so"),
                                         Field(&LdCacheEntry::name, "liba.so.10"),
                                         Field(&LdCacheEntry::name, "liba.so.2")));
}

TEST(LdCache, KeepsTheOrderOfEqualNamesSoThatTheFirstWins) {
  const auto cache = *parse_ld_cache(written({entry("liba.so", "/new"), entry("liba.so", "/old")}));
  EXPECT_THAT(cache.entries, ElementsAre(entry("liba.so", "/new"), entry("liba.so", "/old")));
}

TEST(LdCache, PutsHwcapsEntriesBeforePlainOnes) {
  auto better = entry("liba.so", "/d/glibc-hwcaps/x86-64-v3");
  better.hwcaps = "x86-64-v3";
  auto good = entry("liba.so", "/d/glibc-hwcaps/x86-64-v2");
  good.hwcaps = "x86-64-v2";
  const auto plain = entry("liba.so", "/d");
  const auto cache = *parse_ld_cache(written({plain, better, good}));
  EXPECT_THAT(cache.entries, ElementsAre(good, better, plain));
}

TEST(LdCache, CombinedFormatHoldsTheSameEntries) {
  const std::vector<LdCacheEntry> entries{entry("libb.so.1", "/x"), entry("liba.so.1", "/x"),
                                          entry("liba.so", "/x")};
  const auto cache = *parse_ld_cache(written(entries, LdCacheFormat::Combined));
  EXPECT_EQ(cache.format, LdCacheFormat::Combined);
  EXPECT_EQ(cache.entries, entries);
}

TEST(LdCache, ReadsTheOldBlockWhenThereIsNoNewOne) {
  auto bytes = written({entry("libb.so.1", "/x"), entry("liba.so", "/x")}, LdCacheFormat::Combined);
  const auto at = bytes.find(format::kNewMagic);
  bytes[at] = 'X';
  const auto cache = *parse_ld_cache(bytes);
  EXPECT_EQ(cache.format, LdCacheFormat::Old);
  EXPECT_THAT(cache.entries, ElementsAre(entry("libb.so.1", "/x"), entry("liba.so", "/x")));
}

TEST(LdCache, KnowsWhichEntriesAre64Bit) {
  EXPECT_TRUE(entry("a", "/", kAmd64).is_64bit());
  EXPECT_TRUE(entry("a", "/", kAarch64).is_64bit());
  EXPECT_FALSE(entry("a", "/", kElfLibc6).is_64bit());
  EXPECT_FALSE(entry("a", "/", kX32).is_64bit());
}

TEST(LdCache, EveryTruncationIsCorruptAndNeverACrash) {
  auto special = entry("liba.so", "/d/glibc-hwcaps/x86-64-v3");
  special.hwcaps = "x86-64-v3";
  for (const auto format : {LdCacheFormat::New, LdCacheFormat::Combined}) {
    const auto bytes = written({special, entry("libb.so", "/d"), entry("libc.so", "/d")}, format);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto cut = std::string(
          bytes.data(), size);  // a separate allocation, so that reads past its end are detected
      const auto result = parse_ld_cache(cut);
      ASSERT_TRUE(format == LdCacheFormat::Combined || !result.ok()) << size;
      EXPECT_TRUE(result.ok() || result.error().code() == Errc::Corrupt);
    }
  }
}

TEST(LdCache, RefusesCountsThatTheFileCannotHold) {
  auto bytes = written({entry("liba.so", "/d")});
  put_u32(bytes, offsetof(format::NewHeader, count), 0xffffffff);
  EXPECT_EQ(parse_ld_cache(bytes).error().code(), Errc::Corrupt);
  EXPECT_THAT(parse_ld_cache(bytes).error().text(), HasSubstr("4294967295 entries"));
  put_u32(bytes, offsetof(format::NewHeader, count), 60000);
  EXPECT_THAT(parse_ld_cache(bytes).error().text(), HasSubstr("60000 entries"));
}

TEST(LdCache, RefusesNamesOutsideTheFile) {
  auto bytes = written({entry("liba.so", "/d")});
  put_u32(bytes, sizeof(format::NewHeader) + offsetof(format::NewEntry, name), 0xfffffff0);
  EXPECT_THAT(parse_ld_cache(bytes).error().text(), HasSubstr("entry 0 points outside"));
}

TEST(LdCache, RefusesAnIndexBeyondTheHwcapsNames) {
  auto special = entry("liba.so", "/d");
  special.hwcaps = "x86-64-v2";
  auto bytes = written({special});
  put_u32(bytes, sizeof(format::NewHeader) + offsetof(format::NewEntry, hwcap), 7);
  EXPECT_THAT(parse_ld_cache(bytes).error().text(), HasSubstr("no hwcaps directory"));
}

TEST(LdCache, RefusesAnotherByteOrder) {
  auto bytes = written({entry("liba.so", "/d")});
  bytes[offsetof(format::NewHeader, flags)] = 3;
  EXPECT_THAT(parse_ld_cache(bytes).error().text(), HasSubstr("byte order"));
}

TEST(LdCache, ManyEntriesOnOneLongStringAreRefusedNotCopied) {
  const std::string longest(4000, 'x');
  auto bytes =
      written(std::vector<LdCacheEntry>(60, LdCacheEntry{.name = longest, .path = "/" + longest}));
  const auto entries = std::string(bytes, sizeof(format::NewHeader), sizeof(format::NewEntry));
  std::string bomb = bytes.substr(0, sizeof(format::NewHeader));
  for (int i = 0; i < 60000; ++i) bomb += entries;  // 60000 x 8 KB would be half a gigabyte
  const auto strings = bytes.substr(sizeof(format::NewHeader) + 60 * sizeof(format::NewEntry));
  bomb.replace(60 * sizeof(format::NewEntry) + sizeof(format::NewHeader), strings.size(), strings);
  put_u32(bomb, offsetof(format::NewHeader, count), 59000);
  put_u32(bomb, offsetof(format::NewHeader, strings_size), 0);
  put_u32(bomb, offsetof(format::NewHeader, extension), 0);
  EXPECT_EQ(parse_ld_cache(bomb).error().code(), Errc::Corrupt);
}

TEST(WriteCache, RefusesWhatTheLoaderCouldNotRead) {
  EXPECT_EQ(serialize_ld_cache({.entries = {{.name = "", .path = "/x"}}}).error().code(),
            Errc::Invalid);
  EXPECT_EQ(serialize_ld_cache({.entries = {{.name = std::string("a\0b", 3), .path = "/x"}}})
                .error()
                .code(),
            Errc::Invalid);
  EXPECT_EQ(serialize_ld_cache({.entries = {}, .format = LdCacheFormat::Old}).error().code(),
            Errc::Unsupported);
}

}  // namespace
}  // namespace gantry::loader
