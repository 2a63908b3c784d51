// SPDX-License-Identifier: Apache-2.0
// The server's side of TLS, on memory: bytes from the network in, plain text out, and the reverse.
// It never waits.
#pragma once

#include "base/core/result.hpp"
#include "net/http/openssl.hpp"
#include "net/http/server.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace gantry::http {

// Invalid where certificate and key do not fit each other.
Result<std::shared_ptr<SSL_CTX>> server_context(const ServerIdentity& identity);

class ServerTls {
 public:
  static Result<std::unique_ptr<ServerTls>> start(SSL_CTX* context);

  // Appends what it says to `plain`. After an error output() still has what the peer must be told.
  Status receive(std::string_view bytes, std::string& plain);
  Status send(std::string_view plain);
  void close();          // a farewell in output()
  std::string output();  // for the network; taken
  bool ready() const { return SSL_is_init_finished(session_.get()) == 1; }
  bool ended() const { return ended_; }  // the peer has said that nothing more comes

 private:
  explicit ServerTls(SslSession session) : session_(std::move(session)) {}
  SslSession session_;
  bool ended_ = false;
};

}  // namespace gantry::http
