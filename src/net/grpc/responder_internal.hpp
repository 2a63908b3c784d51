// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/grpc/connection_internal.hpp"
#include "net/grpc/server.hpp"

namespace gantry::grpc {

struct Responder::State {
  State(std::weak_ptr<Connection> its_connection, std::int32_t its_stream, std::size_t limit)
      : connection(std::move(its_connection)), stream(its_stream), waiting_limit(limit) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<Connection> open();  // nullptr after it has ended
  void begin(Connection& to);
  void end(const CallStatus& outcome);

  std::weak_ptr<Connection> connection;
  std::int32_t stream;
  std::size_t waiting_limit;
  bool begun = false;  // headers were sent
  bool over = false;
  std::function<void()> on_cancelled;
};

}  // namespace gantry::grpc
