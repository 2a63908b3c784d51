// SPDX-License-Identifier: Apache-2.0
#include "net/http/reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::http {
namespace {

using testing::HasSubstr;

struct Read {
  Status status;
  std::string body;
  bool done = false;
  bool keeps_alive = false;
  int code = 0;
};

Read read(std::string_view text) {
  ResponseReader reader;
  Read got;
  got.status = reader.feed(text, got.body);
  got.done = reader.done();
  got.keeps_alive = reader.keeps_alive();
  got.code = reader.status();
  return got;
}

TEST(HttpReader, CountedBodyEndsWhereItSays) {
  const auto got = read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_TRUE(got.status.ok());
  EXPECT_EQ(got.body, "hello");
  EXPECT_TRUE(got.done);
  EXPECT_TRUE(got.keeps_alive);
}

TEST(HttpReader, ChunksAreJoinedAndTrailersPassedOver) {
  const auto got = read(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n"
      "Trailer: z\r\n\r\n");
  EXPECT_TRUE(got.status.ok());
  EXPECT_EQ(got.body, "hello world");
  EXPECT_TRUE(got.done);
}

TEST(HttpReader, ContinueIsNotTheAnswer) {
  const auto got =
      read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(got.code, 404);
  EXPECT_TRUE(got.done);
}

TEST(HttpReader, OpenBodyEndsWithTheConnection) {
  ResponseReader reader;
  std::string body;
  ASSERT_TRUE(reader.feed("HTTP/1.0 200 OK\r\n\r\nabc", body).ok());
  EXPECT_FALSE(reader.done());
  EXPECT_TRUE(reader.end().ok());
  EXPECT_TRUE(reader.done());
  EXPECT_FALSE(reader.keeps_alive());
}

TEST(HttpReader, EndInTheMiddleIsAnError) {
  ResponseReader reader;
  std::string body;
  ASSERT_TRUE(reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", body).ok());
  const auto ended = reader.end();
  ASSERT_FALSE(ended.ok());
  EXPECT_THAT(ended.error().text(), HasSubstr("ends in the middle"));
}

TEST(HttpReader, WhatIsNotHttpIsCorrupt) {
  for (const auto* text :
       {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 204 No Content\r\n\r\nbody"}) {
    EXPECT_FALSE(read(text).status.ok()) << text;
  }
  EXPECT_FALSE(read(std::string(kHeadLimit + 1, 'a')).status.ok());
}

// A list of the API server can then be read in smaller pages.
TEST(HttpReader, ABodyWithoutLengthTakesNoMoreThanTheLimit) {
  ResponseReader reader;
  std::string body;
  ASSERT_TRUE(reader.feed("HTTP/1.0 200 OK\r\n\r\n", body).ok());
  const std::string piece(std::size_t{100} << 10, 'x');
  Status fed;
  while (fed.ok() && body.size() <= kBodyLimit) fed = reader.feed(piece, body);
  ASSERT_FALSE(fed.ok());
  EXPECT_EQ(fed.error().code(), Errc::TooLarge);
  EXPECT_LE(body.capacity(), kBodyLimit);
}

TEST(HttpReader, AnAnswerBeyondTheLimitIsTooLarge) {
  for (const auto* text : {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"}) {
    const auto got = read(text).status;
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().code(), Errc::TooLarge) << text;
  }
}

}  // namespace
}  // namespace gantry::http
