// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/ld_cache_merge.hpp"

#include "gpu/loader/ld_cache.hpp"

#include <gmock/gmock.h>

namespace gantry::loader {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

const model::LibraryEdit our_cuda{.name = "libcuda.so.1",
                                  .path = "/usr/local/nvidia/lib64/libcuda.so.1"};

std::string image(std::vector<LdCacheEntry> entries, LdCacheFormat format = LdCacheFormat::New) {
  return *serialize_ld_cache({.entries = std::move(entries), .format = format});
}

std::vector<LdCacheEntry> merged(std::string_view old,
                                 std::vector<model::LibraryEdit> ours = {our_cuda}) {
  return parse_ld_cache(*merge_ld_cache(old, ours))->entries;
}

// Paths the loader would consider for a name, in its order.
std::vector<std::string> found(const std::vector<LdCacheEntry>& entries, std::string_view name) {
  std::vector<std::string> paths;
  for (const auto& entry : entries) {
    if (entry.name == name) paths.push_back(entry.path);
  }
  return paths;
}

TEST(MergeCache, MakesOneWhereTheImageHasNone) {
  EXPECT_THAT(merged(""), ElementsAre(LdCacheEntry{.name = our_cuda.name, .path = our_cuda.path}));
}

TEST(MergeCache, PutsOursBeforeTheImagesCopy) {
  const auto old = image({{.name = "libcuda.so.1", .path = "/usr/lib/libcuda.so.1"},
                          {.name = "libc.so.6", .path = "/lib/libc.so.6"}});
  const auto entries = merged(old);
  EXPECT_THAT(found(entries, "libcuda.so.1"), ElementsAre(our_cuda.path, "/usr/lib/libcuda.so.1"));
  EXPECT_THAT(found(entries, "libc.so.6"), ElementsAre("/lib/libc.so.6"));
}

TEST(MergeCache, KeepsTheImagesHwcapsEntries) {
  const LdCacheEntry fast{.name = "libssl.so.3",
                          .path = "/usr/lib/glibc-hwcaps/x86-64-v3/libssl.so.3",
                          .hwcaps = "x86-64-v3"};
  const LdCacheEntry legacy{
      .name = "libold.so.1", .path = "/lib/tls/libold.so.1", .hwcap = 1ULL << 63};
  const auto entries = merged(image({fast, legacy}));
  EXPECT_THAT(entries, Contains(fast));
  EXPECT_THAT(entries, Contains(legacy));
}

TEST(MergeCache, AnImagesCopyForBetterProcessorsDoesNotWin) {
  const auto old =
      image({{.name = "libcuda.so.1", .path = "/a/libcuda.so.1", .hwcaps = "x86-64-v4"},
             {.name = "libcuda.so.1", .path = "/b/libcuda.so.1", .hwcap = 1ULL << 63},
             {.name = "libcuda.so.1", .path = "/c/libcuda.so.1"}});
  EXPECT_THAT(found(merged(old), "libcuda.so.1"), ElementsAre(our_cuda.path, "/c/libcuda.so.1"));
}

TEST(MergeCache, LibrariesOfOtherMachinesAreLeftAlone) {
  const LdCacheEntry small{.name = "libcuda.so.1",
                           .path = "/usr/lib/i386-linux-gnu/libcuda.so.1",
                           .flags = kElfLibc6,
                           .hwcap = 1ULL << 63};
  EXPECT_THAT(merged(image({small})), Contains(small));
  auto ours = our_cuda;
  ours.is_32bit = true;
  EXPECT_THAT(merged(image({small}), {our_cuda, ours}), Not(Contains(small)));
}

TEST(MergeCache, TwiceIsOnce) {
  const auto old = image({{.name = "libcuda.so.1", .path = "/usr/lib/libcuda.so.1"}});
  const auto once = *merge_ld_cache(old, {{our_cuda}});
  EXPECT_EQ(*merge_ld_cache(once, {{our_cuda}}), once);
  EXPECT_EQ(*merge_ld_cache(old, {{our_cuda, our_cuda}}), once);
}

TEST(MergeCache, ForgetsWhatAnEarlierDriverLeft) {
  const auto old =
      image({{.name = "libcuda.so.570.1", .path = "/usr/local/nvidia/lib64/libcuda.so.570.1"},
             {.name = "liba.so.1", .path = "/usr/local/nvidia/lib64x/liba.so.1"}});
  const std::vector<std::string> owned{"/usr/local/nvidia/lib64"};
  const auto entries = parse_ld_cache(*merge_ld_cache(old, {{our_cuda}}, owned))->entries;
  EXPECT_THAT(found(entries, "libcuda.so.570.1"), IsEmpty());
  EXPECT_THAT(found(entries, "liba.so.1"), ElementsAre("/usr/local/nvidia/lib64x/liba.so.1"));
}

TEST(MergeCache, KeepsTheFormatThatOldLoadersNeed) {
  const auto old =
      image({{.name = "libc.so.6", .path = "/lib/libc.so.6"}}, LdCacheFormat::Combined);
  EXPECT_EQ(parse_ld_cache(*merge_ld_cache(old, {{our_cuda}}))->format, LdCacheFormat::Combined);
}

TEST(MergeCache, ADamagedCacheIsAnErrorAndNotThrownAway) {
  auto old = image({{.name = "libc.so.6", .path = "/lib/libc.so.6"}});
  old.resize(60);
  const auto result = merge_ld_cache(old, {{our_cuda}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Errc::Corrupt);
}

TEST(MergeCache, KnowsWhatALoaderWouldRead) {
  EXPECT_TRUE(is_ld_cache(image({})));
  EXPECT_TRUE(is_ld_cache(image({}, LdCacheFormat::Combined)));
  EXPECT_FALSE(is_ld_cache("#!/bin/sh"));
  EXPECT_FALSE(is_ld_cache(""));
}

}  // namespace
}  // namespace gantry::loader
