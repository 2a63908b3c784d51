// SPDX-License-Identifier: Apache-2.0
#include "http/message.hpp"

#include "base/text.hpp"

namespace gantry::http {

const std::string* find(const Headers& headers, std::string_view name) {
  for (const auto& header : headers) {
    if (header.name.size() == name.size() && to_lower(header.name) == to_lower(name))
      return &header.value;
  }
  return nullptr;
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Status";
  }
}

}  // namespace gantry::http
