// SPDX-License-Identifier: Apache-2.0
#include "net/http/message.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry::http {
namespace {

std::string begin(const Response& response) {
  auto text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  for (const auto& header : response.headers)
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  return text;
}

}  // namespace

const std::string* find(const Headers& headers, std::string_view name) {
  for (const auto& header : headers) {
    if (header.name.size() == name.size() && to_lower(header.name) == to_lower(name))
      return &header.value;
  }
  return nullptr;
}

std::string to_text(const Response& response, Part part, bool keep_alive) {
  auto text = begin(response);
  text += fmt::format("Content-Length: {}\r\nConnection: {}\r\n\r\n", response.body.size(),
                      keep_alive ? "keep-alive" : "close");
  if (part == Part::Head) return text;
  text.reserve(text.size() + response.body.size());
  return text += response.body;
}

std::string stream_head(const Response& response, Framing framing, bool keep_alive) {
  auto text = begin(response);
  if (framing == Framing::Chunked) text += "Transfer-Encoding: chunked\r\n";
  return text += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
}

Response plain_text(int status, std::string_view text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = fmt::format("{}\n", text)};
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Status";
  }
}

}  // namespace gantry::http
