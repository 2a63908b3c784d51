// SPDX-License-Identifier: Apache-2.0
// gRPC server on unix sockets, in a loop, for unary and server-streaming methods. No compression
// and no authentication: every process that can open the socket may call.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"
#include "net/grpc/call_status.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::grpc {

// Sends the answer of one call. It may be stored, copied and answered later; all copies belong to
// the same call. If the last copy is destroyed without an answer, the caller gets INTERNAL.
class Responder {
 public:
  struct State;
  explicit Responder(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Sends the only message of a unary call, with status OK.
  void answer(std::string_view message) const;
  // Ends the call without a message.
  void fail(const CallStatus& outcome) const;

  // Sends the next message of a stream. If the caller does not read and more than four times the
  // message limit is waiting, its stream ends with RESOURCE_EXHAUSTED.
  void send(std::string_view message) const;
  // The same for a message that replaces all earlier ones: waiting messages are dropped.
  void send_latest(std::string_view message) const;
  void finish(const CallStatus& outcome) const { fail(outcome); }

  // True after the caller has hung up or has received its answer.
  bool over() const;
  // Called once, from the loop, when the caller hangs up before the end.
  void on_cancelled(std::function<void()> callback) const;

 private:
  std::shared_ptr<State> state_;
};

class Server {
 public:
  using Handler = std::function<void(const std::string& request, Responder reply)>;
  struct Options {
    std::size_t message_limit = std::size_t{4} << 20;
    std::size_t connection_limit = 64;
  };

  explicit Server(sys::Loop& loop);
  Server(sys::Loop& loop, const Options& options);
  ~Server();  // closes all connections at once; stored responders become useless
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // `method` is such as "/v1beta1.DevicePlugin/Allocate". Handlers run in the loop; they may
  // destroy the server.
  void on(std::string method, Handler handler);

  Status listen(const std::string& path);
  // Accepts no new connections and removes the socket file, unless another file has replaced it.
  void stop_listening();
  // Serves a connection that was accepted elsewhere.
  Status adopt(sys::UniqueFd connection);
  // Sends GOAWAY on every connection, so that callers open a new one for their next calls.
  void go_away();

  std::size_t connection_count() const;
  std::vector<int> connections() const;  // descriptors, still owned here
  // True if no unary call waits for its answer and all our bytes were sent: the connections can be
  // handed over.
  bool quiet() const;

 private:
  class Session;
  struct SharedState;
  std::unique_ptr<SharedState> shared_;
};

}  // namespace gantry::grpc
