// SPDX-License-Identifier: Apache-2.0
#include "doctor/archive/mask.hpp"

#include <gtest/gtest.h>

namespace gantry::doctor {
namespace {

constexpr const char* kFirst = "GPU-4c7e9a10-5b2d-4e8f-93a6-17d0c5b8e2f4";
constexpr const char* kSecond = "MIG-aaaaaaaa-5b2d-4e8f-93a6-17d0c5b8e2f4";

TEST(IdentityMask, ReplacesTheSameByTheSame) {
  IdentityMask mask;
  EXPECT_EQ(mask.apply(std::string(kFirst) + "::3 " + kSecond),
            "GPU-00000000-0000-0000-0000-000000000001::3 "
            "MIG-00000000-0000-0000-0000-000000000002");
  EXPECT_EQ(mask.apply("path/4C7E9A10-5B2D-4E8F-93A6-17D0C5B8E2F4/x"),
            "path/00000000-0000-0000-0000-000000000001/x");
}

TEST(IdentityMask, ReplacesAddresses) {
  IdentityMask mask;
  EXPECT_EQ(mask.apply("https://10.1.2.3:6443 peer=10.1.2.3, 10.1.2.4."),
            "https://192.0.2.1:6443 peer=192.0.2.1, 192.0.2.2.");
  EXPECT_EQ(mask.apply("[fe80::1]:80 at 52:54:00:aa:bb:cc"),
            "[2001:db8::1]:80 at 02:00:00:00:00:01");
  EXPECT_EQ(mask.apply("fd00:1:2:3:4:5:6:7"), "2001:db8::2");
}

TEST(IdentityMask, ReplacesKnownWordsAndUsers) {
  IdentityMask mask;
  mask.add_word("node-7", "host");
  mask.add_word("0322716020488", "serial");
  mask.add_word("x", "host");
  EXPECT_EQ(mask.apply("node-7 node-70 node-7.example.org \"0322716020488\" x"),
            "host-1 node-70 host-1.example.org \"serial-1\" x");
  EXPECT_EQ(mask.apply("/home/alice/a /home/bob /home/alice"),
            "/home/user-1/a /home/user-2 /home/user-1");
}

TEST(IdentityMask, KeepsWhatIsNoIdentity) {
  IdentityMask mask;
  for (const char* text :
       {"0000:3b:00.0", "580.159.04", "127.0.0.1:10250", "0.0.0.0", "::", "[::1]", "05:35:10",
        "PCI:0000:3b:00", "std::string", "sha256:4c7e9a10", "195:255", "1.2.3", "a.b.c.d", "::3"}) {
    EXPECT_EQ(mask.apply(text), text);
  }
}

}  // namespace
}  // namespace gantry::doctor
