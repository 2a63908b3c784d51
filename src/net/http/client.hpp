// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 client for one server, with TLS by what a kubeconfig has. It blocks: use it from a
// command or from a thread of its own, never in a loop that serves others.
#pragma once

#include "base/core/result.hpp"
#include "net/http/message.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace gantry::http {

struct Tls {
  std::string authorities;  // PEM; "" = those of the system
  std::string certificate;  // PEM, of the client; "" = none
  std::string key;
  std::string server_name;  // "" = the host's
  bool verify = true;
};

struct Endpoint {
  std::string host;  // name or address, without brackets
  std::uint16_t port = 443;
  bool secure = true;
  Tls tls;
};

// "https://10.0.0.1:6443/prefix": the endpoint and the prefix, "" where there is none.
struct Url {
  Endpoint endpoint;
  std::string prefix;
};
Result<Url> parse_url(std::string_view url);

class Connection;

class Client {
 public:
  // `cancel`: a descriptor that becomes readable when whatever is under way shall end, with
  // Timeout; -1 = none. It lives longer than the client.
  explicit Client(Endpoint endpoint, int cancel = -1);
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // Keeps the connection for the next request. Connects again if the connection died while it was
  // idle; if that shows only after the request was sent, sends a GET a second time.
  Result<Response> send(const Request& request, std::chrono::milliseconds timeout);

  // For a response that does not end (a watch): `piece` gets the body as it arrives and returns
  // whether it wants more. A response other than 2xx is returned whole. Timeout if the head does
  // not arrive within `head`; the end of `timeout` is the normal end of a stream.
  using Piece = std::function<bool(std::string_view)>;
  Result<Response> stream(const Request& request, const Piece& piece,
                          std::chrono::milliseconds timeout, std::chrono::milliseconds head);

  // For a body that is too large to be kept: `head` is called with status and headers of a 2xx
  // response, then `piece` with the body as it arrives. An error of theirs ends it and is returned.
  struct Receiver {
    std::function<Status(const Response&)> head;
    std::function<Status(std::string_view)> piece;
  };
  struct ReceiveLimits {
    std::chrono::milliseconds stall{30'000};  // without a byte: Timeout
    std::uint64_t bytes = 0;                  // of the body: TooLarge beyond it
  };
  // A response other than 2xx is returned whole. Corrupt if the body ends too early.
  Result<Response> receive(const Request& request, const Receiver& receiver,
                           const ReceiveLimits& limits);

 private:
  Result<Response> send_once(const Request& request, std::chrono::milliseconds timeout);

  Endpoint endpoint_;
  int cancel_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace gantry::http
