// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/openpgp_key.hpp"

#include "install/driver_package/openpgp_key_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_package {
namespace {

using testing::HasSubstr;

RepositoryKey test_key() {
  const auto keys = parse_repository_keys(kTestKey);
  EXPECT_TRUE(keys.ok() && keys->size() == 1);
  return keys.ok() ? keys->front() : RepositoryKey{};
}

TEST(RepositoryKeys, HaveTheFingerprintThatGpgShows) {
  const auto key = test_key();
  EXPECT_EQ(key.fingerprint, kTestKeyFingerprint);
  EXPECT_EQ(key.user, "A vendor <vendor@example.org>");
}

TEST(RepositoryKeys, StayTheSameInBinaryInArmorAndWithoutSubkeys) {
  const auto key = test_key();
  EXPECT_LT(key.packets.size(), key.with_subkeys.size());
  EXPECT_TRUE(key.with_subkeys.starts_with(key.packets));
  for (const auto& file : {key.packets, to_armor(key.packets)}) {
    const auto again = parse_repository_keys(file);
    ASSERT_TRUE(again.ok()) << again.error().text();
    ASSERT_EQ(again->size(), 1U);
    EXPECT_EQ(again->front().fingerprint, key.fingerprint);
    EXPECT_EQ(again->front().with_subkeys, key.packets);
  }
  EXPECT_EQ(to_armor(key.with_subkeys), kTestKey);  // as gpg writes it
}

// Who appends a key to a file whose first one is trusted must not get it imported.
TEST(RepositoryKeys, AreAllFoundAlsoBehindTheFirstOne) {
  const auto key = test_key();
  auto other = key.packets;
  other[8] = static_cast<char>(other[8] ^ 1);  // of the key's own bytes
  for (const auto& file :
       {key.with_subkeys + other, kTestKey + to_armor(other), to_armor(key.with_subkeys + other)}) {
    const auto both = parse_repository_keys(file);
    ASSERT_TRUE(both.ok()) << both.error().text();
    ASSERT_EQ(both->size(), 2U);
    EXPECT_EQ(both->front().packets, key.packets);
    EXPECT_EQ(both->back().packets, other);
    EXPECT_NE(both->back().fingerprint, key.fingerprint);
  }
}

TEST(RepositoryKeys, AreRefusedIfAnythingIsLeftUnread) {
  const auto key = test_key();
  const std::string whole = kTestKey;
  for (const auto& file :
       {std::string(), std::string("<html>"), key.packets.substr(0, 40), key.packets + "x",
        key.packets.substr(40), whole.substr(0, whole.size() - 30), "\xC6\xFF" + key.packets,
        std::string("\x98\x01\x03", 3), std::string("\xC6\xE1\x04", 3)}) {
    const auto keys = parse_repository_keys(file);
    ASSERT_FALSE(keys.ok()) << file;
    EXPECT_EQ(keys.error().code(), Errc::Corrupt);
    EXPECT_THAT(keys.error().text(), HasSubstr("not a file of OpenPGP keys"));
  }
}

TEST(Fingerprints, AreReadAsPeopleWriteThem) {
  const std::string fingerprint = kTestKeyFingerprint;
  for (const auto* text : {"6DEC1F918D866058BECE610EF113AE1688EB8069",
                           "6dec 1f91 8d86 6058 bece  610e f113 ae16 88eb 8069",
                           "0x6DEC1F918D866058BECE610EF113AE1688EB8069"})
    EXPECT_EQ(parse_fingerprint(text), fingerprint) << text;
  for (const auto* other : {"", "88EB8069", "F113AE1688EB8069", "/srv/key.asc",
                            "6DEC1F918D866058BECE610EF113AE1688EB806", "x"})
    EXPECT_EQ(parse_fingerprint(other), std::nullopt) << other;
}

}  // namespace
}  // namespace gantry::driver_package
