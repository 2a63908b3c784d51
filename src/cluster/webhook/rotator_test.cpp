// SPDX-License-Identifier: Apache-2.0
#include "cluster/webhook/rotator.hpp"

#include "base/core/base64.hpp"
#include "base/core/text.hpp"
#include "support/eventually.hpp"
#include "support/fake_api_server.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace gantry::webhook {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::int64_t kDaySeconds = 86'400;
constexpr const char* kSecret = "/api/v1/namespaces/kube-system/secrets/gantry-scheduler-tls";
constexpr const char* kMutating =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gantry";
constexpr const char* kValidating =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gantry";

class RotatorTest : public testing::Test {
 protected:
  RotatorTest() {
    for (const auto* path : {kMutating, kValidating})
      server.put(path,
                 R"({"webhooks":[{"name":"a.gantry.dev","clientConfig":{"service":{"name":"s"}}},)"
                 R"({"name":"b.gantry.dev","clientConfig":{"service":{"name":"s"}},"keep":1}]})");
  }

  kube::ClientConfig access() const {
    kube::ClientConfig found;
    found.server = *http::parse_url(server.url());
    return found;
  }

  ServingBundle look(std::int64_t day) {
    kube::Api api(access(), 60s);
    auto served = rotate_once(api, options, start + day * kDaySeconds);
    EXPECT_TRUE(served.ok()) << served.error().text();
    if (!served.ok()) return {};
    EXPECT_TRUE(served->configured.ok()) << served->configured.error().text();
    EXPECT_TRUE(
        check_serving(served->serving, served->bundle, options.names, start + day * kDaySeconds)
            .ok());
    return *std::move(served);
  }

  // The certificates that an API server with this configuration trusts.
  std::string trusted(const char* path, std::size_t webhook) const {
    const auto object = test::parsed(server.get(path));
    return *from_base64(
        object["webhooks"].element(webhook)["clientConfig"]["caBundle"].string().value_or(""));
  }

  const std::int64_t start = 1'800'000'000;
  test::FakeApiServer server;
  RotationOptions options{.name_space = "kube-system",
                          .names = service_names("gantry-scheduler", "kube-system"),
                          .mutating = {"gantry"},
                          .validating = {"gantry", "not-there"}};
};

TEST_F(RotatorTest, MakesACertificateKeepsItAndTellsEveryWebhookItsAuthority) {
  const auto served = look(0);
  for (const auto* path : {kMutating, kValidating})
    for (const std::size_t webhook : {std::size_t{0}, std::size_t{1}})
      EXPECT_EQ(trusted(path, webhook), served.bundle);
  EXPECT_THAT(server.get(kMutating), HasSubstr(R"("keep":1)"));
  EXPECT_THAT(server.get(kSecret), HasSubstr("kubernetes.io/tls"));
  const auto requests = server.requests().size();
  const auto again = look(1);
  EXPECT_EQ(again.serving, served.serving);
  const auto all = server.requests();
  for (auto at = requests; at < all.size(); ++at)
    EXPECT_THAT(all[at], testing::StartsWith("GET ")) << "nothing was due";
}

TEST_F(RotatorTest, ReplicasThatStartTogetherServeTheSame) {
  std::vector<std::thread> replicas;
  replicas.reserve(6);
  std::mutex mutex;
  std::vector<ServingBundle> served;
  for (int i = 0; i < 6; ++i) {
    replicas.emplace_back([&] {
      auto one = look(0);
      const std::lock_guard lock(mutex);
      served.push_back(std::move(one));
    });
  }
  for (auto& replica : replicas) replica.join();
  for (const auto& one : served) EXPECT_EQ(one.serving, served[0].serving);
}

TEST_F(RotatorTest, RenewsTheCertificateBeforeItsEndFromTheSameAuthority) {
  const auto first = look(0);
  EXPECT_EQ(look(240).serving, first.serving);
  const auto second = look(250);
  EXPECT_NE(second.serving, first.serving);
  EXPECT_EQ(second.bundle, first.bundle);
  // Who still serves the old one is trusted too.
  EXPECT_TRUE(
      check_serving(first.serving, second.bundle, options.names, start + 250 * kDaySeconds).ok());
}

TEST_F(RotatorTest, ANewAuthorityIsTrustedByAllBeforeItSigns) {
  auto old = look(0);
  for (int day = 200; day <= 2900; day += 200) old = look(day);  // certificates come and go
  ASSERT_THAT(certificates_in(old.bundle), SizeIs(1));

  const auto announced = look(2950);
  EXPECT_THAT(certificates_in(announced.bundle), SizeIs(2));
  EXPECT_TRUE(
      check_serving(announced.serving, old.bundle, options.names, start + 2950 * kDaySeconds).ok())
      << "signed by the one that everybody knows";
  EXPECT_EQ(trusted(kValidating, 1), announced.bundle);

  const auto changed = look(2950);
  EXPECT_NE(changed.serving, announced.serving);
  EXPECT_FALSE(
      check_serving(changed.serving, old.bundle, options.names, start + 2950 * kDaySeconds).ok());
  EXPECT_TRUE(
      check_serving(announced.serving, changed.bundle, options.names, start + 2950 * kDaySeconds)
          .ok())
      << "a replica that has not changed yet";
  EXPECT_EQ(look(2951).serving, changed.serving);
  for (int day = 3100; day <= 3700; day += 200) look(day);
  EXPECT_THAT(certificates_in(look(3701).bundle), SizeIs(1)) << "the old one is over";
}

TEST_F(RotatorTest, ANewAuthorityWaitsForAConfigurationThatCannotBeWritten) {
  look(0);
  for (int day = 200; day <= 2800; day += 200) look(day);
  server.override_answers([](const http::Request& request) -> std::unique_ptr<http::Response> {
    if (request.method != "PATCH" || !contains(request.target, "/mutating")) return nullptr;
    return std::make_unique<http::Response>(http::Response{.status = 403});
  });
  kube::Api api(access(), 60s);
  for (int i = 0; i < 3; ++i) {
    const auto served = rotate_once(api, options, start + 2950 * kDaySeconds);
    ASSERT_TRUE(served.ok());
    EXPECT_FALSE(served->configured.ok());
    EXPECT_TRUE(check_serving(served->serving, trusted(kMutating, 0), options.names,
                              start + 2950 * kDaySeconds)
                    .ok())
        << "what is served is what callers trust";
  }
}

TEST_F(RotatorTest, ABrokenCertificateIsReplaced) {
  const auto first = look(0);
  server.put(kSecret, R"({"data":{"tls.crt":"AAAA","ca.key":"AAAA","ca.crt":"!!"}})");
  const auto second = look(1);
  EXPECT_NE(second.serving, first.serving);
  EXPECT_EQ(trusted(kMutating, 0), second.bundle);
  server.put(kSecret, R"({"data":7})");
  kube::Api api(access(), 60s);
  EXPECT_FALSE(rotate_once(api, options, start).ok());
  server.put(kSecret, "{}");
  look(2);
}

TEST_F(RotatorTest, ANewNameIsANewCertificate) {
  const auto first = look(0);
  options.names.emplace_back("hami-scheduler.kube-system.svc");
  EXPECT_NE(look(1).serving, first.serving);
}

TEST_F(RotatorTest, AnotherOwnersSecretIsServedAndNeverWritten) {
  const auto ca = make_ca("cert-manager", {start - kDaySeconds, start + 100 * kDaySeconds});
  const auto own =
      make_serving_certificate(*ca, options.names, {start - kDaySeconds, start + 90 * kDaySeconds});
  const auto text =
      fmt::format(R"({{"data":{{"tls.crt":"{}","tls.key":"{}","ca.crt":"{}"}}}})",
                  to_base64(own->certificate), to_base64(own->key), to_base64(ca->certificate));
  server.put(kSecret, text);
  const auto before = server.get(kSecret);
  EXPECT_EQ(look(80).serving, *own);
  EXPECT_EQ(trusted(kMutating, 0), ca->certificate);
  kube::Api api(access(), 60s);
  const auto over = rotate_once(api, options, start + 95 * kDaySeconds);
  ASSERT_FALSE(over.ok());
  EXPECT_THAT(over.error().text(), HasSubstr("Gantry cannot renew it"));
  EXPECT_EQ(server.get(kSecret), before);
}

TEST_F(RotatorTest, InAThreadItTellsChangesAndTroublesAndStopsAtOnce) {
  std::atomic<int> changes = 0;
  std::atomic<int> troubles = 0;
  // A server's thread may ask after this test has ended.
  const auto away = std::make_shared<std::atomic<bool>>(true);
  server.override_answers([away](const http::Request&) -> std::unique_ptr<http::Response> {
    if (!*away) return nullptr;
    return std::make_unique<http::Response>(http::Response{.status = 503});
  });
  CertificateRotator rotator(
      access(), options, [&](const ServingBundle&) { ++changes; },
      [&](const Error&) { ++troubles; }, 5ms);
  ASSERT_TRUE(test::eventually([&] { return troubles >= 2; }));
  EXPECT_EQ(changes, 0);
  *away = false;
  ASSERT_TRUE(test::eventually([&] { return changes == 1; }));
  server.remove(kSecret);
  EXPECT_TRUE(test::eventually([&] { return changes == 2; }));
}

}  // namespace
}  // namespace gantry::webhook
