// SPDX-License-Identifier: Apache-2.0
#include "net/http/websocket.hpp"

#include "net/http/websocket_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::http {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

// ---- frames

std::string frame(std::uint8_t first, std::string_view payload) {
  std::string text{static_cast<char>(first), static_cast<char>(payload.size())};
  return text.append(payload);
}

TEST(WebSocketReader, JoinsFragmentsAndLetsControlFramesBetween) {
  WebSocketReader reader;
  std::vector<WebSocketMessage> messages;
  const auto bytes = frame(0x01, "he") + frame(0x89, "?") + frame(0x00, "ll") + frame(0x80, "o");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    ASSERT_TRUE(reader.feed(std::string_view(bytes).substr(i, 1), messages).ok());
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_EQ(messages[0].opcode, Opcode::Ping);
  EXPECT_EQ(messages[1].opcode, Opcode::Text);
  EXPECT_EQ(messages[1].payload, "hello");
}

Error rejected(std::string_view bytes) {
  WebSocketReader reader;
  std::vector<WebSocketMessage> messages;
  const auto fed = reader.feed(bytes, messages);
  EXPECT_FALSE(fed.ok());
  return fed.ok() ? Error(Errc::Internal, "accepted") : fed.error();
}

TEST(WebSocketReader, RejectsWhatIsNotAFrameOfAServer) {
  EXPECT_THAT(rejected(frame(0xc1, "")).text(), HasSubstr("extension"));
  EXPECT_THAT(rejected(frame(0x83, "")).text(), HasSubstr("unknown kind"));
  EXPECT_THAT(rejected(std::string("\x81\x80", 2)).text(), HasSubstr("masked"));
  EXPECT_THAT(rejected(frame(0x09, "")).text(), HasSubstr("control frame"));
  EXPECT_THAT(rejected(frame(0x80, "x")).text(), HasSubstr("mixed"));
  EXPECT_THAT(rejected(frame(0x01, "a") + frame(0x01, "b")).text(), HasSubstr("mixed"));
  EXPECT_THAT(rejected(std::string("\x81\x7e\x00\x7d", 4)).text(), HasSubstr("shortest form"));
  EXPECT_EQ(rejected(frame(0xc1, "")).code(), Errc::Corrupt);
}

TEST(WebSocketReader, RefusesAMessageBeyondTheLimitBeforeItArrives) {
  EXPECT_EQ(rejected(std::string("\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", 10)).code(),
            Errc::TooLarge);
  // In fragments: 8 MiB, and one byte more.
  std::string many("\x01\x7f\x00\x00\x00\x00\x00\x80\x00\x00", 10);
  many.append(kBodyLimit, 'x');
  EXPECT_EQ(rejected(many + frame(0x80, "x")).code(), Errc::TooLarge);
}

TEST(WebSocketReader, AClientMasksWhatItSends) {
  EXPECT_EQ(client_frame(Opcode::Text, "Hello", {0x37, 0xfa, 0x21, 0x3d}),
            "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");  // RFC 6455, section 5.7
  EXPECT_THAT(client_frame(Opcode::Text, std::string(126, 'x'), {}), SizeIs(4 + 4 + 126));
  EXPECT_THAT(client_frame(Opcode::Text, std::string(65536, 'x'), {}), SizeIs(10 + 4 + 65536));
}

// ---- the client

Result<Upgrade> open(const ScriptedPeer& peer) {
  return open_websocket(peer.endpoint(), {.target = "/channels"}, 20000ms);
}

TEST(WebSocket, SpeaksAndListens) {
  std::string head;
  std::vector<std::string> heard;
  {
    ScriptedPeer peer([&](const ScriptedSocket& socket) {
      head = socket.read_head();
      // The first frames come in the same packet as the answer.
      socket.write(switching_protocols(head) + frame(0x82, "bytes") + frame(0x81, "welcome"));
      heard.push_back(socket.read_frame());
      socket.write_frame(0x89, "there?");
      heard.push_back(socket.read_frame());
      socket.write_frame(0x81, std::string(300, 'x'));
      socket.write_frame(0x88, "\x03\xe8");
      heard.push_back(socket.read_frame());
    });
    auto opened = open(peer);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    auto& socket = std::get<WebSocket>(*opened);
    EXPECT_EQ(*socket.read(in(20s)), "welcome");
    ASSERT_TRUE(socket.send_text("hello", in(20s)).ok());
    EXPECT_EQ(*socket.read(in(20s)), std::string(300, 'x'));
    EXPECT_EQ(*socket.read(in(20s)), std::nullopt);
  }
  EXPECT_THAT(heard, ElementsAre("hello", "there?", "\x03\xe8"));
  EXPECT_THAT(head, HasSubstr("GET /channels HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"));
}

TEST(WebSocket, ARefusalIsTheServersAnswer) {
  ScriptedPeer peer([](const ScriptedSocket& socket) {
    socket.read_head();
    socket.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nCan ");
  });
  const auto opened = open(peer);
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  const auto& response = std::get<Response>(*opened);
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body, "Can ");
}

TEST(WebSocket, AnAnswerToAnotherKeyIsRefused) {
  ScriptedPeer peer([](const ScriptedSocket& socket) {
    socket.read_head();
    socket.write(switching_protocols("\r\nSec-WebSocket-Key: other\r\n"));
  });
  const auto opened = open(peer);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Errc::Corrupt);
  EXPECT_THAT(opened.error().text(), HasSubstr("does not answer WebSocket's key"));
}

TEST(WebSocket, FramesThatDoNotComeAreATimeout) {
  ScriptedPeer peer([](const ScriptedSocket& socket) {
    socket.write(switching_protocols(socket.read_head()));
    socket.read();  // until the client closes
  });
  auto opened = open(peer);
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  const auto got = std::get<WebSocket>(*opened).read(in(50ms));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Timeout);
}

// Frames that are never for us, faster than they can be read: the socket is never empty.
TEST(WebSocket, AServerThatFloodsIsLeftAtTheDeadline) {
  ScriptedPeer peer([](const ScriptedSocket& socket) {
    socket.write(switching_protocols(socket.read_head()));
    std::string flood;
    while (flood.size() < (1U << 18U)) flood += frame(0x82, "for another reader");
    const auto end = in(5s);  // so that a client without a deadline fails and does not hang
    while (std::chrono::steady_clock::now() < end && socket.write(flood)) {
    }
  });
  auto opened = open(peer);
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  const auto got = std::get<WebSocket>(*opened).read(in(50ms));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Timeout);
}

}  // namespace
}  // namespace gantry::http
