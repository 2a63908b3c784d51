// SPDX-License-Identifier: Apache-2.0
// A peer that sends arbitrary bytes. Even inputs go to a server (after the preface, so that frames
// are reached), odd ones to a client that waits for an answer.
#include "net/grpc/client.hpp"
#include "net/grpc/connection_internal.hpp"
#include "net/grpc/server.hpp"

#include <sys/socket.h>

#include <array>
#include <cstdint>

namespace {

using gantry::grpc::Connection;
using gantry::grpc::Responder;
using gantry::sys::Loop;
using gantry::sys::UniqueFd;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class Nothing : public gantry::grpc::StreamHandler {
  void on_header(std::int32_t, std::string_view, std::string_view) override {}
  void on_data(std::int32_t, std::string_view) override {}
  void on_end(std::int32_t) override {}
  void on_stream_closed(std::int32_t, std::uint32_t) override {}
  void on_connection_closed(const std::string&) override {}
};

void put(int fd, std::string_view bytes) {
  static_cast<void>(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void turn(Loop& loop) {
  for (int i = 0; i < 8; ++i) static_cast<void>(loop.turn(std::chrono::milliseconds{0}).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 16384) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::array<int, 2> ends{};
  GANTRY_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) ==
                0);
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const auto loop = *Loop::make();
  if (data[0] % 2 == 0) {
    gantry::grpc::Server server(*loop);
    server.on("/a/b",
              [](const std::string& request, const Responder& reply) { reply.answer(request); });
    server.on("/a/s", [](const std::string& request, const Responder& reply) {
      for (int i = 0; i < 3; ++i) reply.send(request);
      reply.finish({});
    });
    GANTRY_ASSERT(server.adopt(std::move(ours)).ok());
    put(theirs.get(), kPreface);
    put(theirs.get(), bytes);
    turn(*loop);
    theirs.reset();
    turn(*loop);
    GANTRY_ASSERT(server.connection_count() == 0);
    return 0;
  }
  Nothing nothing;
  const auto client = *Connection::start(*loop, std::move(ours), Connection::Role::Client, nothing);
  const auto stream = client->open({{":method", "POST"}, {":path", "/a/b"}, {":scheme", "http"}});
  GANTRY_ASSERT(stream.ok());
  client->message(*stream, "hello");
  client->finish(*stream, {});
  put(theirs.get(), bytes);
  turn(*loop);
  return 0;
}
