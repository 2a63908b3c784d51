// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 messages, as far as an API server's client and a metrics page need them.
#pragma once

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

std::string_view reason_of(int status);  // "Not Found"; "Status" for numbers nobody has named

}  // namespace gantry::http
