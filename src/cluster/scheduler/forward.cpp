// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/forward.hpp"

#include "net/http/address.hpp"

#include <fmt/format.h>

namespace gantry::scheduler {

std::string lease_identity(std::string_view name, std::string_view address, std::uint16_t port) {
  if (address.empty()) return std::string(name);
  const bool six = address.find(':') != std::string_view::npos && !address.starts_with('[');
  return six ? fmt::format("{}@[{}]:{}", name, address, port)
             : fmt::format("{}@{}:{}", name, address, port);
}

std::optional<http::Endpoint> endpoint_of_identity(std::string_view identity) {
  const auto at = identity.rfind('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto address = http::parse_address(identity.substr(at + 1));
  if (!address.ok() || address->host.empty() || address->port == 0) return std::nullopt;
  return http::Endpoint{.host = address->host, .port = address->port, .secure = false};
}

Result<http::Response> forward_to_leader(const http::Endpoint& leader, const http::Request& request,
                                         std::chrono::milliseconds timeout) {
  http::Client client(leader);
  auto answer = client.send(
      {.method = "POST",
       .target = request.target,
       .headers = {{"Content-Type", "application/json"}, {std::string(kForwardedHeader), "1"}},
       .body = request.body},
      timeout);
  if (!answer.ok()) {
    return std::move(answer).error().in(
        fmt::format("forwarding it to the leader at {}:{}", leader.host, leader.port));
  }
  const auto* type = http::find(answer->headers, "Content-Type");
  return http::Response{.status = answer->status,
                        .headers = {{"Content-Type", type == nullptr ? "application/json" : *type}},
                        .body = std::move(answer->body)};
}

}  // namespace gantry::scheduler
