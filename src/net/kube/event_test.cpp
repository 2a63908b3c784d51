// SPDX-License-Identifier: Apache-2.0
#include "net/kube/event.hpp"

#include "support/eventually.hpp"
#include "support/fake_api_server.hpp"
#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace gantry::kube {
namespace {

Event about(const std::string& pod) {
  return {.object = {.uid = "u-" + pod, .name_space = "ns", .name = pod},
          .type = EventType::Warning,
          .reason = "FailedScheduling",
          .message = "no GPU has 10 GiB free"};
}

TEST(KubeEvent, OfAPodIsInItsNamespace) {
  auto event = about("p");
  event.at_unix_s = 1'615'441'860;
  const auto json = test::parsed(to_json(event, 255));
  EXPECT_EQ(events_path(event), "/api/v1/namespaces/ns/events");
  EXPECT_EQ(json["metadata"]["name"].string(), "p.6049afc4.ff");
  EXPECT_EQ(json["metadata"]["namespace"].string(), "ns");
  EXPECT_EQ(json["involvedObject"]["namespace"].string(), "ns");
  EXPECT_EQ(json["involvedObject"]["uid"].string(), "u-p");
  EXPECT_EQ(json["type"].string(), "Warning");
  EXPECT_EQ(json["lastTimestamp"].string(), "2021-03-11T05:51:00Z");
  EXPECT_FALSE(json["source"]["host"]);
}

TEST(KubeEvent, ALongMessageIsCutBetweenLetters) {
  auto event = about("p");
  for (int i = 0; i < 400; ++i) event.message += "\u00e4\u00f6\u4e2d";
  const auto message = test::parsed(to_json(event, 1))["message"].string().value_or("");
  EXPECT_LE(message.size(), 1024U);
  EXPECT_GT(message.size(), 990U);
}

class EventWriterTest : public testing::Test {
 protected:
  ClientConfig access() const {
    ClientConfig found;
    found.server = *http::parse_url(server.url());
    return found;
  }
  test::FakeApiServer server;
};

TEST_F(EventWriterTest, WritesWhatWaitsBeforeItEndsAndNothingTwice) {
  {
    EventRecorder writer(access());
    for (int i = 0; i < 20; ++i) writer.write(about("p"));
    writer.write(about("q"));
  }
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(EventWriterTest, TriesAgainWhenTheServerIsBackAndNotWhenItRefuses) {
  std::atomic<int> asked = 0;
  server.override_answers([&](const http::Request&) -> std::unique_ptr<http::Response> {
    const int number = ++asked;
    if (number > 2) return nullptr;
    return std::make_unique<http::Response>(http::Response{.status = number == 1 ? 403 : 503});
  });
  std::atomic<int> troubles = 0;
  EventRecorder writer(access(), [&](const Error&) { ++troubles; });
  writer.write(about("refused"));
  writer.write(about("late"));
  EXPECT_TRUE(test::eventually([&] { return asked == 3; }));
  EXPECT_EQ(troubles, 2);
}

}  // namespace
}  // namespace gantry::kube
