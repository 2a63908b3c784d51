// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server, with TLS or without. One thread holds all connections and never blocks; it
// passes a request on only when all of it has arrived, so a client that sends slowly holds one
// connection and nothing else. A handler answers at once in a worker thread, answers later from any
// thread, or sends a stream that needs no thread. Connections, memory and time are bounded, in all
// and for each client address.
#pragma once

#include "base/core/result.hpp"
#include "net/http/address.hpp"
#include "net/http/message.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gantry::http {

class ExchangeHandle;
class ServerCore;

// A response body that is sent piece by piece. All methods may be called from any thread and never
// wait. Copies share one stream; it ends when the last copy does.
class Stream {
 public:
  // Returns false if nothing more can be sent: the client has gone, the stream or the server has
  // ended, or the client reads too slowly. A client that leaves more than `stream_limit` bytes
  // unread is disconnected.
  bool write(std::string_view bytes) const;
  void end() const;  // after the bytes that were written

  bool client_gone() const;
  // Called once if the stream ends for any reason other than end(); at once if it already has. The
  // callback runs in the server's thread and must not block.
  void on_gone(std::function<void()> callback) const;

 private:
  friend class Reply;
  explicit Stream(std::shared_ptr<ExchangeHandle> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<ExchangeHandle> handle_;
};

// The answer that a request is waiting for. All methods may be called from any thread and never
// wait. Copies share one answer; if the last copy ends without one, the client gets status 500.
class Reply {
 public:
  // Answers once. Returns false if the client has gone or the request is already answered.
  bool send(Response response) const;
  // Answers with a stream. `head` has the status and the headers; its body is not sent.
  Stream stream(Response head) const;

  bool client_gone() const;
  void on_gone(std::function<void()> callback) const;  // as in Stream

 private:
  friend class ServerCore;
  explicit Reply(std::shared_ptr<ExchangeHandle> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<ExchangeHandle> handle_;
};

// Runs in a worker; several run at once.
using Handler = std::function<Response(const Request&)>;
// Runs in the server's thread and must not block. The request ends when the call returns.
using LaterHandler = std::function<void(const Request&, Reply)>;

struct Route {
  std::string method;  // a route for GET also answers HEAD
  std::string path;    // "/filter"; "/inspect/*" matches every path below /inspect/
  std::variant<Handler, LaterHandler> handler;
};

struct ServerIdentity {
  std::string certificates;  // PEM: the server's own first, then the intermediate ones
  std::string key;           // PEM
};

// Which connection is closed when a new one arrives and there are too many. Connections of the same
// client address are tried first.
enum class Eviction : std::uint8_t {
  Idle,    // the one that has been idle longest; if all are busy, the new one is refused
  Oldest,  // if all are busy, the oldest of them: for pages that a client can ask for again
};

struct ServerOptions {
  Address address;
  const ServerIdentity* identity = nullptr;  // nullptr: no TLS
  unsigned workers = 8;  // 0: a Handler runs in the server's thread and must not block

  std::size_t connections = 256;
  std::size_t connections_per_address = 128;
  Eviction eviction = Eviction::Idle;
  std::size_t waiting = 256;  // requests without an answer that no worker has begun; 503 beyond it
  std::size_t streams = 64;   // 503 beyond it

  std::size_t head_limit = std::size_t{16} << 10;  // 431 beyond it
  std::size_t body_limit = std::size_t{16} << 20;  // 413 beyond it
  // Bytes of request bodies, and of answers and streams that the clients have not read; 503 beyond.
  std::size_t memory_limit = std::size_t{256} << 20;
  std::size_t memory_per_address = std::size_t{192} << 20;
  std::size_t stream_limit = std::size_t{256} << 10;  // unread bytes of one stream
  // Of each socket, in the kernel, which charges them to the pod; 0: the kernel decides.
  std::size_t send_buffer = 0;
  std::size_t receive_buffer = 0;

  // For a request from its first byte to its last (408), and for the client to read an answer.
  std::chrono::milliseconds request_time{std::chrono::seconds(15)};
  std::chrono::milliseconds idle_time{std::chrono::seconds(120)};  // Go's clients close after 90 s
  std::chrono::milliseconds drain_time{std::chrono::seconds(5)};  // for the last answers at the end
};

// The most memory that a server without TLS takes for its clients, socket buffers included. The
// requests' work in the handlers is not part of it.
std::size_t memory_bound(const ServerOptions& options);

class Server {
 public:
  // Listens and serves from here on. Answers 404 if no path matches (and lists the paths), 405 if
  // the method does not. Invalid if the certificate and the key do not belong together.
  static Result<std::unique_ptr<Server>> start(const ServerOptions& options,
                                               std::vector<Route> routes);
  // Stops listening, waits `drain_time` for answers that are not sent yet, ends the streams, and
  // closes. Afterwards no handler or callback runs; Reply and Stream objects stay valid.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // For connections made from now on. Invalid if key and certificate do not belong together; the
  // old ones stay in use then.
  Status replace(const ServerIdentity& identity);

  std::uint16_t port() const;

  struct Counts {
    std::size_t connections = 0;
    std::size_t streams = 0;
    std::uint64_t requests = 0;
    std::uint64_t refused = 0;   // requests and connections over a bound, or not HTTP
    std::size_t held_bytes = 0;  // of requests and of unread answers
  };
  Counts counts() const;

 private:
  explicit Server(std::shared_ptr<ServerCore> core);
  std::shared_ptr<ServerCore> core_;
};

}  // namespace gantry::http
