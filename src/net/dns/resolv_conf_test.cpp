// SPDX-License-Identifier: Apache-2.0
#include "net/dns/resolv_conf.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::dns {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ResolvConf, ReadsWhatTheKubeletWrites) {
  const auto conf = parse_resolv_conf(
      "search default.svc.cluster.local svc.cluster.local cluster.local\n"
      "nameserver 10.96.0.10\n"
      "options ndots:5\n");
  EXPECT_THAT(conf.name_servers, ElementsAre(*parse_ip("10.96.0.10")));
  EXPECT_THAT(conf.search,
              ElementsAre("default.svc.cluster.local", "svc.cluster.local", "cluster.local"));
  EXPECT_EQ(conf.ndots, 5U);
}

TEST(ResolvConf, ReadsOptionsWithinTheirLimits) {
  auto conf = parse_resolv_conf(
      "options ndots:99 timeout:99\noptions attempts:99 rotate use-vc no-aaaa edns0 trust-ad "
      "x:y\n");
  EXPECT_EQ(conf.ndots, 15U);
  EXPECT_EQ(conf.timeout, std::chrono::seconds(30));
  EXPECT_EQ(conf.attempts, 5U);
  EXPECT_TRUE(conf.rotate);
  EXPECT_TRUE(conf.use_tcp);
  EXPECT_FALSE(conf.ask_ipv6);
  conf = parse_resolv_conf("options ndots:0 timeout:0 attempts:0");
  EXPECT_EQ(conf.ndots, 0U);
  EXPECT_EQ(conf.timeout, std::chrono::seconds(1));
  EXPECT_EQ(conf.attempts, 1U);
  EXPECT_EQ(parse_resolv_conf("options ndots:-1 timeout: attempts:two rotated"), ResolvConf{});
}

TEST(ResolvConf, ReadsAddressesWithTheirInterface) {
  const auto conf = parse_resolv_conf("nameserver fe80::1%lo\nnameserver 2001:db8::1\r\n");
  ASSERT_THAT(conf.name_servers, SizeIs(2));
  EXPECT_NE(conf.name_servers[0].scope, 0U);
  EXPECT_EQ(conf.name_servers[1], *parse_ip("2001:db8::1"));
}

TEST(ResolvConf, KeepsThreeServers) {
  const auto conf = parse_resolv_conf(
      "nameserver ns.example\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n"
      "nameserver 10.0.0.4\n");
  EXPECT_THAT(conf.name_servers, SizeIs(kMaxServers));
  EXPECT_EQ(conf.name_servers[0], *parse_ip("10.0.0.1"));
}

TEST(ResolvConf, TheLastOfSearchAndDomainCounts) {
  EXPECT_THAT(parse_resolv_conf("search a b\ndomain c d\n").search, ElementsAre("c"));
  EXPECT_THAT(parse_resolv_conf("domain c\nsearch a. b # two\n").search, ElementsAre("a", "b"));
}

TEST(ResolvConf, ASearchListMayBeEmpty) {
  const auto conf = parse_resolv_conf("search .\n");
  EXPECT_THAT(conf.search, IsEmpty());
  EXPECT_TRUE(conf.has_search);
}

TEST(ResolvConf, KeepsABoundedNumberOfDomains) {
  std::string line = "search";
  for (int i = 0; i < 100; ++i) line += fmt::format(" d{}.example", i);
  EXPECT_THAT(parse_resolv_conf(line).search, SizeIs(kMaxSearchDomains));
}

TEST(ResolvConf, IgnoresCommentsAndWhatItDoesNotKnow) {
  EXPECT_EQ(parse_resolv_conf("# nameserver 10.0.0.1\n; search a\nsortlist 10.0.0.0\nsearch\n\n"),
            ResolvConf{});
}

TEST(ResolvConf, ReadsOnAfterBytesThatAreNotText) {
  using std::string_view_literals::operator""sv;
  const auto conf = parse_resolv_conf("\0\0\n\xFF nameserver\nnameserver 10.0.0.1\n"sv);
  EXPECT_THAT(conf.name_servers, ElementsAre(*parse_ip("10.0.0.1")));
}

TEST(CandidateNames, AShortNameIsTriedInTheSearchDomainsFirst) {
  const ResolvConf conf{.search = {"a.example", "b.example"}, .ndots = 2};
  EXPECT_THAT(candidate_names(conf, "x.y"), ElementsAre("x.y.a.example", "x.y.b.example", "x.y"));
}

TEST(CandidateNames, ANameWithEnoughDotsIsTriedAsItIsFirst) {
  const ResolvConf conf{.search = {"a.example"}, .ndots = 2};
  EXPECT_THAT(candidate_names(conf, "x.y.z"), ElementsAre("x.y.z", "x.y.z.a.example"));
}

TEST(CandidateNames, AFinalDotMakesANameComplete) {
  EXPECT_THAT(candidate_names({.search = {"a.example"}}, "x."), ElementsAre("x"));
}

TEST(CandidateNames, LeavesOutNamesThatAreTooLong) {
  const std::string name = std::string(60, 'a') + "." + std::string(60, 'b');
  const std::string domain = std::string(63, 'c') + "." + std::string(63, 'd') + "." + "example";
  EXPECT_THAT(candidate_names({.search = {domain, "z"}, .ndots = 5}, name),
              ElementsAre(name + ".z", name));
}

}  // namespace
}  // namespace gantry::dns
