// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "net/http/authority.hpp"
#include "net/http/request_internal.hpp"

#include <fmt/format.h>

namespace gantry::http {

std::string authority(const Endpoint& endpoint) {
  const bool bracketed = contains(endpoint.host, ":");
  auto text = bracketed ? fmt::format("[{}]", endpoint.host) : endpoint.host;
  if (endpoint.port != (endpoint.secure ? 443 : 80)) text += fmt::format(":{}", endpoint.port);
  return text;
}

Status check_head(const Request& request) {
  const auto breaks = [](const std::string& text) {
    return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos;
  };
  bool bad = breaks(request.target) || breaks(request.method) ||
             request.target.find(' ') != std::string::npos;
  for (const auto& header : request.headers) bad = bad || breaks(header.name + header.value);
  if (bad) return Error(Errc::Invalid, "a request with a line break in its head");
  return {};
}

std::string format_request(const Request& request, const Endpoint& endpoint) {
  auto text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.target,
                          authority(endpoint));
  for (const auto& header : request.headers)
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  if (!request.body.empty() || request.method != "GET")
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  return text + "\r\n" + request.body;
}

}  // namespace gantry::http
