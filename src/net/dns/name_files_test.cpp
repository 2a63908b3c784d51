// SPDX-License-Identifier: Apache-2.0
#include "net/dns/name_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::dns {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(HostsFile, FindsNamesAndAliasesInAnyCase) {
  constexpr std::string_view kHosts =
      "127.0.0.1\tlocalhost\n"
      "10.0.0.5  api.example API  # api2\r\n"
      "2001:db8::5 api.example\n"
      "#10.0.0.6 api\n"
      "not-an-address api\n";
  EXPECT_THAT(addresses_in_hosts(kHosts, "Api.Example"),
              ElementsAre(*parse_ip("10.0.0.5"), *parse_ip("2001:db8::5")));
  EXPECT_THAT(addresses_in_hosts(kHosts, "api."), ElementsAre(*parse_ip("10.0.0.5")));
  EXPECT_THAT(addresses_in_hosts(kHosts, "api2"), IsEmpty());
  EXPECT_THAT(addresses_in_hosts(kHosts, "10.0.0.5"), IsEmpty());
}

TEST(HostsFile, KeepsABoundedNumberOfAddresses) {
  std::string hosts;
  for (int i = 0; i < 1000; ++i) hosts += "10.0.0.1 a\n";
  EXPECT_THAT(addresses_in_hosts(hosts, "a"), SizeIs(kMaxAddresses));
}

TEST(UnsupportedSources, NamesWhatIsNeitherFilesNorDns) {
  EXPECT_THAT(unsupported_sources("passwd: files sss\n"
                                  "hosts:\tfiles mdns4_minimal [NOTFOUND=return] dns resolve "
                                  "[ !UNAVAIL=return ] # wins\n"),
              ElementsAre("mdns4_minimal", "resolve"));
  EXPECT_THAT(unsupported_sources("hosts: files dns\n"), IsEmpty());
  EXPECT_THAT(unsupported_sources("hosts: files [never closed dns"), IsEmpty());
  EXPECT_THAT(unsupported_sources(""), IsEmpty());
}

}  // namespace
}  // namespace gantry::dns
