// SPDX-License-Identifier: Apache-2.0
#include "cluster/webhook/certificate.hpp"

#include "net/http/client.hpp"
#include "net/http/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace gantry::webhook {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::int64_t kDay = 86'400;
const std::vector<std::string> names_of_service{"gantry-scheduler.kube-system.svc",
                                                "gantry-scheduler"};

KeyPair authority(Validity validity = {kNow - kDay, kNow + 100 * kDay}) {
  auto made = make_ca("test", validity);
  EXPECT_TRUE(made.ok()) << made.error().text();
  return *std::move(made);
}

KeyPair serving(const KeyPair& from, Validity validity = {kNow - kDay, kNow + 10 * kDay}) {
  auto made = make_serving_certificate(from, names_of_service, validity);
  EXPECT_TRUE(made.ok()) << made.error().text();
  return *std::move(made);
}

TEST(Certificate, IsGoodForItsNamesItsTimeAndItsAuthority) {
  const auto ca = authority();
  const auto pair = serving(ca);
  EXPECT_TRUE(check_serving(pair, ca.certificate, names_of_service, kNow).ok());
  const auto validity = validity_of(pair.certificate);
  ASSERT_TRUE(validity.ok());
  EXPECT_EQ(validity->from_unix_s, kNow - kDay);
  EXPECT_EQ(validity->until_unix_s, kNow + 10 * kDay);

  const auto why = [&](const KeyPair& what, std::string_view bundle,
                       const std::vector<std::string>& names, std::int64_t now) {
    const auto checked = check_serving(what, bundle, names, now);
    return checked.ok() ? "good" : checked.error().text();
  };
  EXPECT_THAT(why(pair, ca.certificate, {"other.svc"}, kNow), HasSubstr("not for other.svc"));
  EXPECT_THAT(why(pair, ca.certificate, names_of_service, kNow + 11 * kDay), HasSubstr("expired"));
  EXPECT_THAT(why(pair, ca.certificate, names_of_service, kNow - 2 * kDay),
              HasSubstr("not yet valid"));
  const auto stranger = authority();
  EXPECT_NE(why(pair, stranger.certificate, names_of_service, kNow), "good");
  EXPECT_EQ(why(pair, stranger.certificate + ca.certificate, names_of_service, kNow), "good");
  EXPECT_THAT(why({pair.certificate, stranger.key}, ca.certificate, names_of_service, kNow),
              HasSubstr("does not belong to the certificate"));
  EXPECT_NE(why({"", ""}, ca.certificate, names_of_service, kNow), "good");
}

TEST(Certificate, NamesThatAreNoneAreRefused) {
  const auto ca = authority();
  const std::vector<std::vector<std::string>> bad{{}, {""}, {"a,DNS:evil"}, {"A b"}};
  for (const auto& names : bad)
    EXPECT_FALSE(make_serving_certificate(ca, names, {kNow, kNow + kDay}).ok());
  EXPECT_FALSE(make_serving_certificate({ca.certificate, serving(ca).key}, names_of_service,
                                        {kNow, kNow + 1})
                   .ok());
}

TEST(Certificate, ABundleIsTakenApart) {
  const auto one = authority();
  const auto two = authority();
  EXPECT_THAT(certificates_in("noise\n" + one.certificate + two.certificate),
              testing::ElementsAre(one.certificate, two.certificate));
  EXPECT_THAT(certificates_in("nothing"), testing::IsEmpty());
}

// ---- served

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Identity {
  KeyPair ca = authority({now() - kDay, now() + kDay});
  KeyPair own = serving(ca, {now() - kDay, now() + kDay});
  http::ServerIdentity identity() const { return {own.certificate, own.key}; }
};

class ServedCertificate : public testing::Test {
 protected:
  ServedCertificate() {
    const auto identity = first.identity();
    auto started = http::Server::start(
        {.address = {.host = "127.0.0.1", .port = 0}, .identity = &identity},
        {{"POST", "/echo", [](const http::Request& request) {
            return http::Response{.status = 200, .headers = {}, .body = request.body};
          }}});
    EXPECT_TRUE(started.ok()) << started.error().text();
    service = *std::move(started);
  }
  http::Client client(const std::string& authorities,
                      const std::string& name = "gantry-scheduler.kube-system.svc") const {
    return http::Client({.host = "127.0.0.1",
                         .port = service->port(),
                         .secure = true,
                         .tls = {.authorities = authorities, .server_name = name}});
  }
  static std::string echo(http::Client& client, const std::string& text) {
    const auto got =
        client.send({.method = "POST", .target = "/echo", .headers = {}, .body = text}, 60s);
    return got.ok() ? got->body : got.error().text();
  }

  Identity first;
  std::unique_ptr<http::Server> service;
};

TEST_F(ServedCertificate, IsTrustedByWhoKnowsTheAuthorityAndUnderItsNamesOnly) {
  auto good = client(first.ca.certificate);
  EXPECT_EQ(echo(good, "hello"), "hello");
  const std::string large(std::size_t{3} << 20, 'x');
  EXPECT_EQ(echo(good, large).size(), large.size());
  auto other = client(first.ca.certificate, "other.svc");
  EXPECT_THAT(echo(other, "x"), HasSubstr("not trusted"));
  auto stranger = client(Identity().ca.certificate);
  EXPECT_THAT(echo(stranger, "x"), HasSubstr("not trusted"));
  EXPECT_EQ(echo(good, "again"), "again");
}

TEST_F(ServedCertificate, IsReplacedWhileItIsUsed) {
  auto old = client(first.ca.certificate);
  EXPECT_EQ(echo(old, "a"), "a");
  const Identity second;
  ASSERT_TRUE(service->replace(second.identity()).ok());
  EXPECT_EQ(echo(old, "b"), "b") << "connections that there were go on";
  auto fresh = client(second.ca.certificate);
  EXPECT_EQ(echo(fresh, "c"), "c");
  auto late = client(first.ca.certificate);
  EXPECT_THAT(echo(late, "d"), HasSubstr("not trusted"));

  const auto bad = service->replace({second.own.certificate, first.own.key});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code(), Errc::Invalid);
  auto still = client(second.ca.certificate);
  EXPECT_EQ(echo(still, "e"), "e");
}

TEST_F(ServedCertificate, IsReplacedUnderLoad) {
  const Identity second;
  const auto both = first.ca.certificate + second.ca.certificate;
  std::atomic<int> right = 0;
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        auto asks = client(both);
        right += echo(asks, "x") == "x" ? 1 : 0;
      }
    });
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(service->replace(i % 2 == 0 ? second.identity() : first.identity()).ok());
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(right, 40);
}

TEST_F(ServedCertificate, PlainTextOnTheTlsPortIsRefusedAndHarmless) {
  http::Client plain({.host = "127.0.0.1", .port = service->port(), .secure = false});
  EXPECT_FALSE(plain.send({.target = "/echo"}, 60s).ok());
  auto good = client(first.ca.certificate);
  EXPECT_EQ(echo(good, "x"), "x");
  EXPECT_GE(service->counts().refused, 1U);
}

}  // namespace
}  // namespace gantry::webhook
