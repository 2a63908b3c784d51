// SPDX-License-Identifier: Apache-2.0
#include "net/http/client.hpp"

#include "base/core/text.hpp"
#include "net/http/connection_internal.hpp"
#include "net/http/reader.hpp"
#include "net/http/request_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::http {

Result<Url> parse_url(std::string_view url) {
  const Error bad(Errc::Invalid,
                  fmt::format("{}: not of the form https://HOST[:PORT][/PATH]", url));
  Url found;
  auto rest = url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    found.endpoint.secure = false;
    found.endpoint.port = 80;
  } else {
    return bad;
  }
  const auto slash = rest.find('/');
  if (slash != std::string_view::npos) {
    found.prefix = rest.substr(slash);
    while (found.prefix.ends_with('/')) found.prefix.pop_back();
    rest = rest.substr(0, slash);
  }
  auto colon = rest.rfind(':');
  if (rest.starts_with('[')) {
    const auto close = rest.find(']');
    if (close == std::string_view::npos) return bad;
    found.endpoint.host = rest.substr(1, close - 1);
    colon = rest.find(':', close);
  } else {
    found.endpoint.host = rest.substr(0, colon);
  }
  if (colon != std::string_view::npos) {
    const auto port = parse_u64(rest.substr(colon + 1));
    if (!port || *port == 0 || *port > 65535) return bad;
    found.endpoint.port = static_cast<std::uint16_t>(*port);
  }
  if (found.endpoint.host.empty()) return bad;
  return found;
}

Client::Client(Endpoint endpoint, int cancel) : endpoint_(std::move(endpoint)), cancel_(cancel) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Result<Response> Client::send_once(const Request& request, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  if (connection_ && !connection_->is_idle()) connection_.reset();
  if (!connection_) {
    GANTRY_TRY(connection_, connect(endpoint_, deadline, cancel_));
  }
  // Kept again only after a whole answer.
  auto connection = std::move(connection_);
  GANTRY_CHECK(connection->write(format_request(request, endpoint_), deadline));
  ResponseReader reader(request.method == "HEAD" ? ResponseReader::Body::None
                                                 : ResponseReader::Body::Expected);
  Response response;
  while (!reader.done()) {
    GANTRY_TRY(const auto bytes, connection->read(deadline));
    if (bytes.empty()) {
      GANTRY_CHECK(reader.end());
      break;
    }
    GANTRY_CHECK(reader.feed(bytes, response.body));
  }
  response.status = reader.status();
  response.headers = reader.headers();
  if (reader.keeps_alive()) connection_ = std::move(connection);
  return response;
}

Result<Response> Client::send(const Request& request, std::chrono::milliseconds timeout) {
  GANTRY_CHECK(check_head(request));
  const bool reused = connection_ != nullptr;
  auto first = send_once(request, timeout);
  // A server may close an idle connection at any moment. What changes something is asked twice only
  // by the caller, who knows whether that is harmless.
  // A server that did not answer in time has had its time.
  const bool again = reused && !first.ok() && request.method == "GET" &&
                     first.error().code() != Errc::Timeout &&
                     first.error().code() != Errc::TooLarge;
  return again ? send_once(request, timeout) : std::move(first);
}

Result<Response> Client::stream(const Request& request, const Piece& piece,
                                std::chrono::milliseconds timeout, std::chrono::milliseconds head) {
  GANTRY_CHECK(check_head(request));
  const auto start = std::chrono::steady_clock::now();
  GANTRY_TRY(auto connection, connect(endpoint_, start + head, cancel_));
  GANTRY_CHECK(connection->write(format_request(request, endpoint_), start + head));
  ResponseReader reader;
  std::string body;
  while (!reader.done()) {
    auto bytes = connection->read(start + (reader.head_done() ? timeout : head));
    if (!bytes.ok() && bytes.error().code() == Errc::Timeout && reader.head_done()) break;
    if (!bytes.ok()) return std::move(bytes).error();
    if (bytes->empty()) {
      GANTRY_CHECK(reader.end());
      break;
    }
    GANTRY_CHECK(reader.feed(*bytes, body));
    if (body.empty() || reader.status() / 100 != 2) continue;
    if (!piece(body)) break;
    body.clear();
  }
  return Response{.status = reader.status(), .headers = reader.headers(), .body = std::move(body)};
}

Result<Response> Client::receive(const Request& request, const Receiver& receiver,
                                 const ReceiveLimits& limits) {
  GANTRY_CHECK(check_head(request));
  const auto next = [&] { return std::chrono::steady_clock::now() + limits.stall; };
  GANTRY_TRY(auto connection, connect(endpoint_, next(), cancel_));
  GANTRY_CHECK(connection->write(format_request(request, endpoint_), next()));
  ResponseReader reader(ResponseReader::Body::Expected, std::max(limits.bytes, kBodyLimit));
  Response response;
  bool told = false;
  std::uint64_t passed = 0;
  while (!reader.done()) {
    GANTRY_TRY(const auto bytes, connection->read(next()));
    if (bytes.empty()) {
      GANTRY_CHECK(reader.end());
    } else {
      GANTRY_CHECK(reader.feed(bytes, response.body));
    }
    if (!reader.head_done()) continue;
    response.status = reader.status();
    if (response.status / 100 != 2) continue;
    if (!std::exchange(told, true))
      GANTRY_CHECK(receiver.head({.status = reader.status(), .headers = reader.headers()}));
    passed += response.body.size();
    if (passed > limits.bytes) return too_large(limits.bytes);
    if (!response.body.empty()) GANTRY_CHECK(receiver.piece(response.body));
    response.body.clear();
  }
  response.headers = reader.headers();
  return response;
}

}  // namespace gantry::http
