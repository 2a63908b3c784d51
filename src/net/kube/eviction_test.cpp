// SPDX-License-Identifier: Apache-2.0
#include "net/kube/eviction.hpp"

#include "support/fake_api_server.hpp"
#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

namespace gantry::kube {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class EvictionTest : public testing::Test {
 protected:
  EvictionTest() {
    server.override_answers([this](const http::Request& request) {
      const std::lock_guard hold(mutex);
      body = request.body;
      return std::make_unique<http::Response>(http::Response{
          .status = status, .body = R"({"kind":"Status","message":"the server's words"})"});
    });
    ClientConfig access;
    access.server = *http::parse_url(server.url());
    api = std::make_unique<Api>(access, 20s);
  }
  EvictionOutcome with(int answer) {
    {
      const std::lock_guard hold(mutex);
      status = answer;
    }
    const auto said = evict(*api, eviction);
    if (said.evicted != EvictionOutcome::Done) {
      EXPECT_THAT(said.text, HasSubstr("the server's words"));
    }
    return said.evicted;
  }

  test::FakeApiServer server;
  std::mutex mutex;
  int status = 201;
  std::string body;
  std::unique_ptr<Api> api;
  Eviction eviction{.pod = {.uid = "u1", .name_space = "ns", .name = "p"}};
};

TEST_F(EvictionTest, NamesThePodAndItsUidSoThatNoOtherPodGoes) {
  EXPECT_EQ(with(201), EvictionOutcome::Done);
  EXPECT_THAT(server.requests(),
              ElementsAre("POST /api/v1/namespaces/ns/pods/p/eviction?timeout=20000ms"));
  const auto sent = test::parsed(body);
  EXPECT_EQ(sent["apiVersion"].string(), "policy/v1");
  EXPECT_EQ(sent["deleteOptions"]["preconditions"]["uid"].string(), "u1");
  EXPECT_FALSE(sent["deleteOptions"]["dryRun"]);
}

TEST_F(EvictionTest, AskedOnlyItIsADryRun) {
  eviction.mode = Eviction::Mode::Ask;
  EXPECT_EQ(with(201), EvictionOutcome::Done);
  EXPECT_THAT(server.requests()[0], HasSubstr("dryRun=All"));
  EXPECT_THAT(test::parsed(body)["deleteOptions"]["dryRun"].strings(), ElementsAre("All"));
}

TEST_F(EvictionTest, ABudgetOrABusyServerMeansLaterAndMissingRightsMeanNo) {
  EXPECT_EQ(with(429), EvictionOutcome::Protected);
  EXPECT_EQ(with(500), EvictionOutcome::Protected);
  EXPECT_EQ(with(403), EvictionOutcome::Refused);
  EXPECT_EQ(with(404), EvictionOutcome::Gone);
  EXPECT_EQ(with(409), EvictionOutcome::Gone);
}

TEST_F(EvictionTest, ANominationIsOfOnePodAndNoOtherOfItsName) {
  status = 200;
  EXPECT_TRUE(nominate(*api, eviction.pod, "n1").ok());
  EXPECT_THAT(server.requests(), ElementsAre("PATCH /api/v1/namespaces/ns/pods/p/status"));
  EXPECT_EQ(body, R"({"metadata":{"uid":"u1"},"status":{"nominatedNodeName":"n1"}})");
}

TEST_F(EvictionTest, AnAnswerThatIsLostIsNotKnown) {
  server.override_answers([](const http::Request&) { return std::unique_ptr<http::Response>(); });
  server.drop_answers([](const http::Request&) { return true; });
  EXPECT_EQ(evict(*api, eviction).evicted, EvictionOutcome::Unknown);
}

}  // namespace
}  // namespace gantry::kube
