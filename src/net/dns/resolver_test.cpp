// SPDX-License-Identifier: Apache-2.0
#include "net/dns/resolver.hpp"

#include "base/sys/stop_signal.hpp"
#include "net/dns/message.hpp"
#include "net/dns/name_server_for_test.hpp"
#include "net/dns/route_order_internal.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace gantry::dns {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;
using testing::UnorderedElementsAre;

using Messages = std::vector<std::string>;

constexpr IpAddress kFound{.bytes = {192, 0, 2, 1}};
constexpr IpAddress kSecondServer{.bytes = {127, 0, 0, 2}};

sys::WaitLimit within(std::chrono::milliseconds time) {
  return {.deadline = Clock::now() + time};
}

// Long enough for any test that does not wait for a deadline.
sys::WaitLimit patient() {
  return within(30s);
}

ResolverConfig config_for(const NameServer& server) {
  ResolverConfig config{.port = server.port()};
  config.resolv.name_servers = {*parse_ip("127.0.0.1")};
  return config;
}

// The address for the question about A, nothing for AAAA.
Messages found(const ReceivedQuery& query) {
  if (query.type != RecordType::A) return {response_to(query.bytes, {})};
  return {response_to(query.bytes, {a_record("192.0.2.1")})};
}

Messages silent(const ReceivedQuery&) {
  return {};
}

Messages no_such_name(const ReceivedQuery& query) {
  return {response_to(query.bytes, {}, 3)};
}

Messages server_failure(const ReceivedQuery& query) {
  return {response_to(query.bytes, {}, 2)};
}

Errc code_of(const Result<std::vector<IpAddress>>& result) {
  return result.ok() ? Errc::Internal : result.error().code();
}

TEST(Resolve, AnAddressNeedsNoFileAndNoServer) {
  const test::Tree empty;
  for (const auto* text : {"10.0.0.1", "2001:db8::1", "fe80::1%lo"})
    EXPECT_THAT(*resolve(empty.host(), text, within(0ms)), ElementsAre(*parse_ip(text)));
}

TEST(Resolve, LocalhostIsThisMachineWhateverTheFilesSay) {
  test::Tree tree;
  tree.file("etc/hosts", "192.0.2.9 localhost\n");
  for (const auto* name : {"localhost", "LocalHost.", "a.localhost"})
    EXPECT_THAT(*resolve(tree.host(), name, within(0ms)),
                UnorderedElementsAre(*parse_ip("127.0.0.1"), *parse_ip("::1")));
}

TEST(Resolve, ANameThatCannotBeOneIsNotAsked) {
  const test::Tree tree;
  for (const auto* name : {"", ".", "a b", "a..b", "b\x1B[2J"}) {
    const auto result = resolve(tree.host(), name, patient());
    EXPECT_EQ(code_of(result), Errc::Invalid) << name;
  }
}

TEST(Resolve, HostsAnswersBeforeDns) {
  const NameServer server(found);
  auto config = config_for(server);
  config.hosts = "10.0.0.5 api.example api\n";
  EXPECT_THAT(*resolve(config, "API", patient()), ElementsAre(*parse_ip("10.0.0.5")));
  EXPECT_THAT(server.received(), IsEmpty());
}

TEST(Resolve, AsksForBothKindsOfAddresses) {
  const NameServer server([](const ReceivedQuery& query) {
    return Messages{response_to(
        query.bytes,
        {query.type == RecordType::A ? a_record("127.0.0.5") : aaaa_record("2001:db8::1")})};
  });
  EXPECT_THAT(*resolve(config_for(server), "api.example", patient()),
              UnorderedElementsAre(*parse_ip("127.0.0.5"), *parse_ip("2001:db8::1")));
}

TEST(Resolve, FindsAServiceOfKubernetesByItsShortName) {
  const NameServer server([](const ReceivedQuery& query) {
    return query.name == "kubernetes.default.svc.cluster.local" ? found(query)
                                                                : no_such_name(query);
  });
  auto config = config_for(server);
  config.resolv.search = {"ml.svc.cluster.local", "svc.cluster.local", "cluster.local"};
  config.resolv.ndots = 5;
  EXPECT_THAT(*resolve(config, "kubernetes.default.svc", patient()), ElementsAre(kFound));
  EXPECT_THAT(server.asked_names(), ElementsAre("kubernetes.default.svc.ml.svc.cluster.local",
                                                "kubernetes.default.svc.svc.cluster.local",
                                                "kubernetes.default.svc.cluster.local"));
}

TEST(Resolve, ASilentServerTakesTheDeadlineAndNoMore) {
  const NameServer server(silent);
  auto config = config_for(server);
  config.resolv.search = {"a.example", "b.example"};
  const auto begin = Clock::now();
  const auto result = resolve(config, "api", within(200ms));
  EXPECT_EQ(code_of(result), Errc::Timeout);
  EXPECT_THAT(result.error().text(), AllOf(HasSubstr("api: DNS server 127.0.0.1: no answer"),
                                           HasSubstr("/etc/resolv.conf")));
  EXPECT_LT(Clock::now() - begin, 5s);
  // Two attempts, each for A and AAAA, for one name; fewer if this thread did not run in time.
  EXPECT_THAT(server.received(), SizeIs(Le(4)));
}

TEST(Resolve, WithoutTimeNoServerIsAsked) {
  const NameServer server(found);
  EXPECT_EQ(code_of(resolve(config_for(server), "api", within(0ms))), Errc::Timeout);
  EXPECT_THAT(server.received(), IsEmpty());
}

TEST(Resolve, ACancelledLookupEnds) {
  const NameServer server(silent);
  sys::StopSignal stop;
  stop.raise();
  const auto result =
      resolve(config_for(server), "api", {.deadline = Clock::now() + 30s, .cancel = stop.fd()});
  EXPECT_EQ(code_of(result), Errc::Timeout);
  EXPECT_THAT(result.error().text(), HasSubstr("asked to stop"));
}

TEST(Resolve, AskTheNextServerWhenOneIsSilent) {
  const NameServer first(silent);
  const NameServer second(found, "127.0.0.2", first.port());
  auto config = config_for(first);
  config.resolv.name_servers.push_back(kSecondServer);
  config.resolv.timeout = 1s;
  EXPECT_THAT(*resolve(config, "api", patient()), ElementsAre(kFound));
}

TEST(Resolve, AskTheNextServerWhenOneFails) {
  for (const auto& bad : {NameServer::Handler(server_failure), NameServer::Handler([](auto& query) {
                            return Messages{response_to(query.bytes, {"garbage"})};
                          })}) {
    const NameServer first(bad);
    const NameServer second(found, "127.0.0.2", first.port());
    auto config = config_for(first);
    config.resolv.name_servers.push_back(kSecondServer);
    EXPECT_THAT(*resolve(config, "api", patient()), ElementsAre(kFound));
    EXPECT_THAT(first.received(), SizeIs(2)) << "once for A, once for AAAA";
  }
}

TEST(Resolve, SaysThatAllServersFailed) {
  const NameServer server(server_failure);
  const auto result = resolve(config_for(server), "api", patient());
  EXPECT_EQ(code_of(result), Errc::Busy);
  EXPECT_THAT(result.error().text(), HasSubstr("api: DNS server 127.0.0.1: the server says SERV"));
  EXPECT_THAT(server.received(), SizeIs(4)) << "two attempts";
}

TEST(Resolve, AServerThatIsNotThereIsNoticedAtOnce) {
  ResolverConfig config;
  {
    const NameServer server(silent);
    config = config_for(server);
  }
  const auto begin = Clock::now();
  const auto result = resolve(config, "api", patient());
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(result.error().text(), HasSubstr("Connection refused"));
  EXPECT_LT(Clock::now() - begin, 10s);
}

TEST(Resolve, IgnoresMessagesThatAnswerAnotherQuery) {
  const NameServer server([](const ReceivedQuery& query) {
    auto wrong_id = response_to(query.bytes, {a_record("192.0.2.66")});
    wrong_id[0] = static_cast<char>(wrong_id[0] ^ 0x55);
    auto wrong_name = response_to(query.bytes, {a_record("192.0.2.66")});
    wrong_name[13] = 'x';
    Messages all{"garbage", "", query.bytes, wrong_id, wrong_name};
    for (const auto& message : found(query)) all.push_back(message);
    return all;
  });
  EXPECT_THAT(*resolve(config_for(server), "api", patient()), ElementsAre(kFound));
}

TEST(Resolve, AServerThatOnlySendsGarbageEndsTheAttempt) {
  const NameServer server([](const ReceivedQuery&) { return Messages(100, "garbage"); });
  const auto result = resolve(config_for(server), "api", patient());
  EXPECT_EQ(code_of(result), Errc::Corrupt);
  EXPECT_THAT(result.error().text(), HasSubstr("messages that answer no query"));
}

TEST(Resolve, IgnoresMessagesOfAnotherServer) {
  const NameServer other(silent, "127.0.0.3");
  const NameServer server([&](const ReceivedQuery& query) {
    const sys::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto from = socket_address(*parse_ip("127.0.0.3"), 0);
    const auto client = socket_address(*parse_ip("127.0.0.1"), query.source_port);
    const auto wrong = response_to(query.bytes, {a_record("192.0.2.66")});
    EXPECT_EQ(::bind(socket.get(), from.get(), from.size), 0);
    ::sendto(socket.get(), wrong.data(), wrong.size(), 0, client.get(), client.size);
    return found(query);
  });
  EXPECT_THAT(*resolve(config_for(server), "api", patient()), ElementsAre(kFound));
}

TEST(Resolve, AsksByTcpForWhatUdpTruncates) {
  const NameServer server([](const ReceivedQuery& query) {
    if (!query.by_tcp) return Messages{response_to(query.bytes, {}, 0x0200)};
    if (query.type != RecordType::A) return found(query);
    const std::vector<std::string> records(4000, a_record("192.0.2.1"));
    return Messages{response_to(query.bytes, records)};
  });
  EXPECT_THAT(*resolve(config_for(server), "api", patient()), SizeIs(64));
}

TEST(Resolve, AServerThatTruncatesByTcpIsAnError) {
  const NameServer server(
      [](const ReceivedQuery& query) { return Messages{response_to(query.bytes, {}, 0x0200)}; });
  const auto result = resolve(config_for(server), "api", patient());
  EXPECT_EQ(code_of(result), Errc::Corrupt);
  EXPECT_THAT(result.error().text(), HasSubstr("by TCP"));
}

TEST(Resolve, AsksByTcpOnlyIfResolvConfSaysSo) {
  const NameServer server(found);
  auto config = config_for(server);
  config.resolv.use_tcp = true;
  EXPECT_THAT(*resolve(config, "api", patient()), ElementsAre(kFound));
  for (const auto& query : server.received()) EXPECT_TRUE(query.by_tcp);
}

TEST(Resolve, ALoopOfAliasesOrPointersIsAnError) {
  for (const auto& record :
       {cname_record(kQuestionName, kQuestionName),
        a_record("192.0.2.1", std::string_view("\xC0\x15", 2))}) {  // "api.": the record's own name
    const NameServer server(
        [&](const ReceivedQuery& query) { return Messages{response_to(query.bytes, {record})}; });
    EXPECT_EQ(code_of(resolve(config_for(server), "api", patient())), Errc::Corrupt);
  }
}

TEST(Resolve, ANameThatDoesNotExistNamesTheSourcesThatWereNotAsked) {
  const NameServer server(no_such_name);
  auto config = config_for(server);
  config.resolv.search = {"lab.example"};
  config.unsupported_sources = {"mdns4_minimal", "sss"};
  const auto result = resolve(config, "gpu7", patient());
  EXPECT_EQ(code_of(result), Errc::NotFound);
  EXPECT_EQ(result.error().text(),
            "gpu7: no address in /etc/hosts, and none by DNS (servers: 127.0.0.1; names: "
            "gpu7.lab.example, gpu7); /etc/nsswitch.conf also names mdns4_minimal, sss, which "
            "Gantry cannot ask: write its address into /etc/hosts, or use the address in place of "
            "the name");
}

TEST(Resolve, AServerThatDoesNotKnowAaaaStillGivesIpv4) {
  for (const auto& about_aaaa : {server_failure, silent}) {
    const NameServer server([&](const ReceivedQuery& query) {
      return query.type == RecordType::A ? found(query) : about_aaaa(query);
    });
    auto config = config_for(server);
    config.resolv.timeout = 1s;
    EXPECT_THAT(*resolve(config, "api", patient()), ElementsAre(kFound));
    EXPECT_THAT(server.received(), SizeIs(2)) << "one attempt, which leaves time to connect";
  }
}

TEST(Resolve, AsksForIpv4OnlyIfResolvConfSaysSo) {
  const NameServer server(found);
  auto config = config_for(server);
  config.resolv.ask_ipv6 = false;
  EXPECT_THAT(*resolve(config, "api", patient()), ElementsAre(kFound));
  EXPECT_THAT(server.received(), SizeIs(1));
}

TEST(Resolve, IdsAndSourcePortsDiffer) {
  const NameServer server(found);
  for (int i = 0; i < 8; ++i) (void)resolve(config_for(server), "api", patient());
  std::set<std::string> ids;
  std::set<std::uint16_t> ports;
  for (const auto& query : server.received()) {
    ids.insert(query.bytes.substr(0, 2));
    ports.insert(query.source_port);
  }
  EXPECT_GT(ids.size(), 8U) << "of 16 queries";
  EXPECT_GT(ports.size(), 4U) << "of 8 attempts";
}

TEST(ResolverConfig, ReadsTheFilesOfAMachine) {
  test::Tree tree;
  tree.file("etc/resolv.conf", "nameserver 10.0.0.1\nsearch a.example\n")
      .file("etc/hosts", "10.0.0.5 api\n")
      .file("etc/nsswitch.conf", "hosts: files resolve dns\n");
  const auto config = load_resolver_config(tree.host());
  ASSERT_TRUE(config.ok()) << config.error().text();
  EXPECT_THAT(config->resolv.name_servers, ElementsAre(*parse_ip("10.0.0.1")));
  EXPECT_THAT(config->unsupported_sources, ElementsAre("resolve"));
  EXPECT_THAT(*resolve(tree.host(), "api", patient()), ElementsAre(*parse_ip("10.0.0.5")));
}

TEST(ResolverConfig, TheDomainOfTheMachineIsTheSearchListWithoutOne) {
  test::Tree tree;
  tree.file("proc/sys/kernel/hostname", "gpu7.lab.example\n");
  EXPECT_THAT(load_resolver_config(tree.host())->resolv.search, ElementsAre("lab.example"));
  tree.file("etc/resolv.conf", "search .\n");
  EXPECT_THAT(load_resolver_config(tree.host())->resolv.search, IsEmpty());
}

TEST(ResolverConfig, AMachineWithoutFilesAsksItself) {
  const test::Tree tree;
  EXPECT_EQ(load_resolver_config(tree.host())->resolv, ResolvConf{});
}

TEST(ResolverConfig, AFileThatCannotBeReadIsAnError) {
  test::Tree tree;
  tree.directory("etc/resolv.conf");
  EXPECT_FALSE(load_resolver_config(tree.host()).ok());
}

TEST(RouteOrder, Ipv6ComesFirstOnlyWhereItHasARoute) {
  const auto ipv4 = *parse_ip("127.0.0.1");
  // No machine has a route to an address of the interface with this number.
  const IpAddress no_route{.family = AF_INET6, .bytes = {0xFE, 0x80}, .scope = 0x7FFFFFFF};
  EXPECT_THAT(order_by_route({no_route, ipv4}), ElementsAre(ipv4, no_route));
}

}  // namespace
}  // namespace gantry::dns
