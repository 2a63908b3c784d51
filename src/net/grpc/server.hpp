// SPDX-License-Identifier: Apache-2.0
// gRPC's serving side on unix sockets, in a loop: unary and server-streaming methods. No
// compression, no authentication: who may open the socket may call.
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

// One call's way back to its caller. May be kept and answered later, and copied: copies are the
// same call. When the last one goes without an answer, the caller is told INTERNAL.
class Responder {
 public:
  struct State;
  explicit Responder(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // A unary call's only message, and OK.
  void answer(std::string_view message) const;
  // The end without a message.
  void fail(const CallStatus& outcome) const;

  // A stream's next message. A caller that does not read loses its stream (RESOURCE_EXHAUSTED) when
  // more than four messages' limit waits for it.
  void send(std::string_view message) const;
  // The same where a message makes all earlier ones pointless: those that wait are left out.
  void send_latest(std::string_view message) const;
  void finish(const CallStatus& outcome) const { fail(outcome); }

  // The caller has hung up, or has its answer: nobody reads any more.
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
  ~Server();  // hangs up at once; replies that are kept are over
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "/v1beta1.DevicePlugin/Allocate". Handlers run in the loop; they may end the server.
  void on(std::string method, Handler handler);

  Status listen(const std::string& path);
  // No new connections; the socket file goes, unless another one is at its place by now.
  void stop_listening();
  // A connection that somebody else accepted.
  Status adopt(sys::UniqueFd connection);
  // Asks every caller to send its next calls elsewhere.
  void go_away();

  std::size_t connection_count() const;
  std::vector<int> connections() const;  // descriptors, still owned here
  // No unary call waits for its answer and every byte of ours has left: connections can be handed
  // on.
  bool quiet() const;

 private:
  class Session;
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace gantry::grpc
