// SPDX-License-Identifier: Apache-2.0
// One HTTP/2 connection on a socket in a loop: what Server and Client have in common. Bytes go
// through nghttp2. Data of a stream waits here until the peer's flow-control windows and the socket
// have room.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gantry::grpc {

inline constexpr std::size_t kMessagePrefixSize = 5;  // a flag, four bytes of length

struct Header {
  std::string name;
  std::string value;
};

// Handles incoming events. Called only from the loop, never from inside a call to Connection. A
// handler may send, reset and close, and may destroy the owner of the connection.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  virtual void on_header(std::int32_t stream, std::string_view name, std::string_view value) = 0;
  virtual void on_data(std::int32_t stream, std::string_view bytes) = 0;
  virtual void on_end(std::int32_t stream) = 0;  // the peer sends nothing more on it
  virtual void on_stream_closed(std::int32_t stream, std::uint32_t http2_error) = 0;
  // Called last: the connection has ended.
  virtual void on_connection_closed(const std::string& why) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  enum class Role : std::uint8_t { Server, Client };

  // `streams` gets every event until close() or the end of the connection.
  static Result<std::shared_ptr<Connection>> start(sys::Loop& loop, sys::UniqueFd fd, Role role,
                                                   StreamHandler& streams);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Client: a new stream with its headers. Returns its id, or the reason why none can be opened.
  Result<std::int32_t> open(const std::vector<Header>& headers);
  // Server: the answer's headers. Now: nothing follows, not even data.
  enum class StreamEnd : std::uint8_t { Later, Now };
  void headers(std::int32_t stream, const std::vector<Header>& headers, StreamEnd end);
  // One gRPC message, with its length in front.
  void message(std::int32_t stream, std::string_view bytes);
  // Replaces the waiting messages of this stream; a message that is partly sent stays.
  void replace_waiting(std::int32_t stream, std::string_view bytes);
  // Ends the stream after everything that waits, with trailers (server) or without (client).
  void finish(std::int32_t stream, std::vector<Header> trailers);
  void reset(std::int32_t stream, std::uint32_t http2_error);
  // Opens no new streams; the open ones continue.
  void go_away();
  // Closes at once, without calling on_connection_closed.
  void close();

  bool may_open() const;  // client: the server accepts new streams
  bool closed() const { return session_ == nullptr; }
  int fd() const { return fd_.get(); }
  std::size_t waiting_bytes(std::int32_t stream) const;
  // Everything was sent: nothing waits in a stream or in the socket's queue.
  bool all_sent() const;

 private:
  struct ResponseQueue {
    std::deque<std::string> messages;
    std::size_t sent = 0;  // of the first one
    std::size_t bytes = 0;
    bool finishing = false;
    std::vector<Header> trailers;
  };

  Connection(sys::UniqueFd fd, StreamHandler& streams) : fd_(std::move(fd)), streams_(&streams) {}
  Status begin(sys::Loop& loop, Role role);
  void on_ready(std::uint32_t events);
  bool receive();
  bool feed(std::string_view bytes);
  void flush_soon();
  void flush();
  bool fill();
  bool write_out();
  void fail(const std::string& why);
  nghttp2_data_provider provider();
  ssize_t provide(nghttp2_session* session, std::int32_t stream, std::uint8_t* buffer,
                  std::size_t length, std::uint32_t* flags);
  static nghttp2_session_callbacks* callbacks();

  sys::UniqueFd fd_;
  StreamHandler* streams_;
  nghttp2_session* session_ = nullptr;
  nghttp2_session* ended_ = nullptr;  // deleted with us: nghttp2 may still be on the stack
  sys::Loop::Watch watch_;
  sys::Loop::Timer flush_timer_;
  sys::Loop* loop_ = nullptr;
  std::unordered_map<std::int32_t, ResponseQueue> outgoing_;
  std::string out_;  // output of nghttp2 for the socket
  std::size_t out_sent_ = 0;
  bool busy_ = false;  // on_ready is on the stack; it flushes at its end
  bool flush_is_due_ = false;
  bool waiting_for_write_ = false;
};

}  // namespace gantry::grpc
