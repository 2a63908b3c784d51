// SPDX-License-Identifier: Apache-2.0
#include "net/dns/ip_address.hpp"

#include <netinet/in.h>

#include <gtest/gtest.h>

#include <cstring>

namespace gantry::dns {
namespace {

TEST(IpAddress, ReadsAndWritesBothKinds) {
  for (const auto* text :
       {"10.0.0.1", "255.255.255.255", "::", "::1", "2001:db8::8:800:200c:417a"}) {
    const auto address = parse_ip(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_string(*address), text);
  }
}

TEST(IpAddress, ReadsTheInterfaceOfALinkLocalAddress) {
  const auto by_name = parse_ip("fe80::1%lo");
  ASSERT_TRUE(by_name);
  EXPECT_NE(by_name->scope, 0U);
  EXPECT_EQ(parse_ip("fe80::1%7")->scope, 7U);
  EXPECT_EQ(to_string(*parse_ip("fe80::1%7")), "fe80::1%7");
}

TEST(IpAddress, RejectsNamesAndOtherSpellings) {
  for (const auto& text :
       {std::string(), std::string("10.1"), std::string("0x0a000001"), std::string("10.0.0.256"),
        std::string("10.0.0.1 "), std::string("10.0.0.1\0", 9), std::string("::1\0x", 5),
        std::string("[::1]"), std::string("10.0.0.1%lo"), std::string("fe80::1%"),
        std::string("fe80::1%0"), std::string("fe80::1%no-such-if"), std::string("fe80::1%lo%lo"),
        std::string("fe80::1%99999999999"), std::string(200, '1')})
    EXPECT_FALSE(parse_ip(text)) << text;
}

TEST(IpAddress, BecomesASocketAddress) {
  const auto made = socket_address(*parse_ip("fe80::1%7"), 53);
  sockaddr_in6 in6{};
  ASSERT_EQ(made.size, sizeof in6);
  std::memcpy(&in6, made.get(), sizeof in6);
  EXPECT_EQ(in6.sin6_family, AF_INET6);
  EXPECT_EQ(ntohs(in6.sin6_port), 53);
  EXPECT_EQ(in6.sin6_scope_id, 7U);
}

}  // namespace
}  // namespace gantry::dns
