// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/checksum.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_package {
namespace {

using testing::HasSubstr;

// FIPS 180-2: "" and "abc".
constexpr std::string_view kEmpty =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256Digest, IsTheSameInPieces) {
  Sha256 digest;
  EXPECT_EQ(Sha256().finish(), kEmpty);
  digest.add("a");
  digest.add("");
  digest.add("bc");
  EXPECT_EQ(digest.finish(), kAbc);
}

TEST(Sha256Digest, OfAFile) {
  test::Tree tree;
  tree.file("abc", "abc").file("empty").directory("d");
  EXPECT_EQ(*sha256_of(tree.host(), "/abc"), kAbc);
  EXPECT_EQ(*sha256_of(tree.host(), "/empty"), kEmpty);
  EXPECT_EQ(sha256_of(tree.host(), "/none").error().code(), Errc::NotFound);
  EXPECT_EQ(sha256_of(tree.host(), "/d").error().code(), Errc::Invalid);
  EXPECT_TRUE(check_sha256(tree.host(), "/abc", std::string(kAbc)).ok());
  const auto other = check_sha256(tree.host(), "/abc", std::string(kEmpty));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Errc::Denied);
  EXPECT_THAT(other.error().text(), HasSubstr(std::string(kAbc)));
  EXPECT_THAT(other.error().text(), HasSubstr(std::string(kEmpty)));
}

TEST(Sha256Digest, IsReadInBothCases) {
  EXPECT_EQ(*parse_sha256(" BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n"),
            kAbc);
  for (const auto& bad : {std::string(), std::string(63, 'a'), std::string(65, 'a'),
                          std::string(64, 'g'), "sha256:" + std::string(kAbc)}) {
    const auto found = parse_sha256(bad);
    ASSERT_FALSE(found.ok()) << bad;
    EXPECT_THAT(found.error().text(), HasSubstr("sha256sum"));
  }
}

}  // namespace
}  // namespace gantry::driver_package
