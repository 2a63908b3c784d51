// SPDX-License-Identifier: Apache-2.0
#include "net/http/request_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::http {
namespace {

using State = RequestReader::State;
using testing::HasSubstr;

RequestReader small_reader() {
  return RequestReader({.head = 200, .body = 10});
}

TEST(RequestReader, PutsARequestTogetherFromSingleBytes) {
  auto reader = small_reader();
  std::string in;
  for (const char byte : std::string_view("POST /f HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")) {
    EXPECT_NE(reader.state(), State::Whole);
    in.push_back(byte);
    reader.feed(in);
  }
  ASSERT_EQ(reader.state(), State::Whole);
  EXPECT_TRUE(reader.keeps_alive());
  const auto request = reader.take();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/f");
  EXPECT_EQ(request.body, "abc");
  EXPECT_EQ(reader.state(), State::Waiting);
}

TEST(RequestReader, LeavesWhatBelongsToTheNext) {
  auto reader = small_reader();
  std::string in = "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\nx";
  ASSERT_EQ(reader.feed(in), State::Whole);
  EXPECT_EQ(reader.take().target, "/a");
  ASSERT_EQ(reader.feed(in), State::Whole);
  EXPECT_FALSE(reader.keeps_alive());
  EXPECT_EQ(reader.take().target, "/b");
  EXPECT_EQ(in, "x");
}

TEST(RequestReader, RefusesWhatItCannotBoundOrCouldReadInTwoWays) {
  const struct {
    std::string text;
    int status;
  } cases[] = {
      {"POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", 411},
      {"POST / HTTP/1.1\r\nExpect: a miracle\r\n\r\n", 417},
      {"hello\r\n\r\n", 400},
      {"GET http://x/ HTTP/1.1\r\n\r\n", 400},
      {"GET /" + std::string(300, 'a'), 431},
      {"GET /" + std::string(300, 'a') + " HTTP/1.1\r\n\r\n", 431},
  };
  for (const auto& [text, status] : cases) {
    auto reader = small_reader();
    auto in = text;
    EXPECT_EQ(reader.feed(in), State::Bad) << text;
    EXPECT_EQ(reader.refusal().status, status) << text;
  }
}

TEST(RequestReader, KnowsWhichClientsWaitForContinue) {
  auto reader = small_reader();
  std::string in = "POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
  EXPECT_EQ(reader.feed(in), State::Body);
  EXPECT_TRUE(reader.wants_continue());
  in = "ab";
  EXPECT_EQ(reader.feed(in), State::Whole);
}

}  // namespace
}  // namespace gantry::http
