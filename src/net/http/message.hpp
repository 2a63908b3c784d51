// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 messages, as far as an API server's client and a metrics page need them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::http {

struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;

// Names are compared without case. nullptr when there is none.
const std::string* find(const Headers& headers, std::string_view name);

struct Request {
  std::string method = "GET";
  std::string target = "/";
  Headers headers;
  std::string body;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

enum class Part : std::uint8_t { Whole, Head };  // Head: the answer to HEAD
// As it is sent, with Content-Length and Connection.
std::string to_text(const Response& response, Part part, bool keep_alive);

// The head of a response whose length is not known. UntilClose: for clients of HTTP/1.0.
enum class Framing : std::uint8_t { Chunked, UntilClose };
std::string stream_head(const Response& response, Framing framing, bool keep_alive);

Response plain_text(int status, std::string_view text);  // and a line's end

std::string_view reason_of(int status);  // "Not Found"; "Status" for unknown numbers

}  // namespace gantry::http
