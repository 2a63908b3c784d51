// SPDX-License-Identifier: Apache-2.0
#include "net/kube/binding.hpp"

#include "base/core/text.hpp"
#include "support/fake_api_server.hpp"
#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace gantry::kube {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class BindingTest : public testing::Test {
 protected:
  BindingTest() {
    server.put(kPod,
               R"({"metadata":{"namespace":"ns","uid":"u1","annotations":{"own":"1"}},"spec":{}})");
    ClientConfig access;
    access.server = *http::parse_url(server.url());
    api = std::make_unique<Api>(access, 20s);
  }

  BindResult bind_it() { return bind(*api, binding); }
  static bool is_binding(const http::Request& request) {
    return contains(request.target, "/binding");
  }

  static constexpr const char* kPod = "/api/v1/namespaces/ns/pods/p";
  test::FakeApiServer server;
  std::unique_ptr<Api> api;
  Binding binding{.pod = {.uid = "u1", .name_space = "ns", .name = "p"},
                  .node = "n1",
                  .annotations = {{"gantry.dev/placement", R"([{"a":"\"b"}])"}, {"x", "y"}}};
};

TEST_F(BindingTest, NodeAndAnnotationsComeInOneRequest) {
  EXPECT_EQ(bind_it().bound, BindOutcome::Done);
  const auto pod = test::parsed(server.get(kPod));
  EXPECT_EQ(pod["spec"]["nodeName"].string(), "n1");
  EXPECT_EQ(pod["metadata"]["annotations"]["gantry.dev/placement"].string(), R"([{"a":"\"b"}])");
  EXPECT_EQ(pod["metadata"]["annotations"]["own"].string(), "1");
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_THAT(server.requests()[0], HasSubstr("timeout=20000ms"));
}

TEST_F(BindingTest, AnAnswerThatIsLostIsASuccessWhenThePodHasIt) {
  std::atomic<bool> lost = false;
  server.drop_answers(
      [&](const http::Request& request) { return is_binding(request) && !lost.exchange(true); });
  const auto answer = bind_it();
  EXPECT_EQ(answer.bound, BindOutcome::Done) << answer.text;
  EXPECT_TRUE(lost);
  EXPECT_EQ(bind_it().bound, BindOutcome::Done);  // the same once more: already there
}

TEST_F(BindingTest, ALostRequestHasAnUnknownResult) {
  server.override_answers([](const http::Request& request) -> std::unique_ptr<http::Response> {
    if (!is_binding(request)) return nullptr;
    return std::make_unique<http::Response>(http::Response{.status = 504});
  });
  const auto answer = bind_it();
  EXPECT_EQ(answer.bound, BindOutcome::Unknown);
  EXPECT_THAT(answer.text, HasSubstr("504"));
}

TEST_F(BindingTest, NeitherIsOneWhoseServerDiesBeforeThePodCanBeRead) {
  server.drop_answers([](const http::Request&) { return true; });
  const auto answer = bind_it();
  EXPECT_EQ(answer.bound, BindOutcome::Unknown);
  EXPECT_THAT(answer.text, HasSubstr("cannot be read"));
}

TEST_F(BindingTest, AnotherSchedulersBindingIsRecognised) {
  binding.annotations["x"] = "other";
  ASSERT_EQ(bind_it().bound, BindOutcome::Done);
  binding.annotations["x"] = "y";
  const auto placed = bind_it();
  EXPECT_EQ(placed.bound, BindOutcome::Elsewhere);
  EXPECT_THAT(placed.text, HasSubstr("another x"));
  binding.node = "n2";
  const auto moved = bind_it();
  EXPECT_EQ(moved.bound, BindOutcome::Elsewhere);
  EXPECT_THAT(moved.text, HasSubstr("on n1"));
}

TEST_F(BindingTest, APodThatIsGoneReplacedOrLeavingIsNotBound) {
  binding.pod.uid = "u0";
  EXPECT_EQ(bind_it().bound, BindOutcome::Replaced);
  binding.pod.uid = "u1";
  server.put(kPod, R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}})");
  EXPECT_EQ(bind_it().bound, BindOutcome::Deleting);
  server.remove(kPod);
  EXPECT_EQ(bind_it().bound, BindOutcome::Gone);
}

TEST_F(BindingTest, WithoutAUidAnyPodOfThatNameIsMeant) {
  binding.pod.uid.clear();
  EXPECT_EQ(bind_it().bound, BindOutcome::Done);
  EXPECT_EQ(bind_it().bound, BindOutcome::Done);
}

TEST_F(BindingTest, ARefusalSaysWhatTheServerSaid) {
  for (const int status : {403, 409, 422}) {
    server.override_answers([&](const http::Request& request) -> std::unique_ptr<http::Response> {
      if (!is_binding(request)) return nullptr;
      return std::make_unique<http::Response>(
          http::Response{.status = status, .headers = {}, .body = R"({"message":"not yours"})"});
    });
    const auto answer = bind_it();
    EXPECT_EQ(answer.bound, BindOutcome::Refused) << status;
    EXPECT_THAT(answer.text, HasSubstr("not yours"));
  }
}

}  // namespace
}  // namespace gantry::kube
