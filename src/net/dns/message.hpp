// SPDX-License-Identifier: Apache-2.0
// DNS messages (RFC 1035): a query for the addresses of one name, and the response to it. Pure:
// bytes in, bytes out.
#pragma once

#include "base/core/result.hpp"
#include "net/dns/ip_address.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::dns {

enum class RecordType : std::uint16_t { A = 1, Cname = 5, Aaaa = 28 };

inline constexpr std::size_t kMaxAliases = 16;          // CNAME records between name and address
inline constexpr std::size_t kMaxRecords = 512;         // of one response; the rest is not read
inline constexpr std::size_t kMaxMessageSize = 0xFFFF;  // the length before a message over TCP

// Labels of 1 to 63 letters, digits, '-' and '_', at most 253 characters, without a final dot.
bool is_host_name(std::string_view name);

// A query for the records of one type. The name must be a host name.
std::string encode_query(std::uint16_t id, std::string_view name, RecordType type);

// Whether a message is a response with the query's id and question. Any other message came from
// somebody who guesses, or too late for an earlier query.
bool is_response_to(std::string_view message, std::string_view query);

struct Response {
  bool is_truncated = false;         // ask again by TCP
  std::vector<IpAddress> addresses;  // none: the name does not exist, or has no such address
  bool operator==(const Response&) const = default;
};

// Reads a message for which is_response_to is true. Busy if the server says that it could not
// answer (SERVFAIL, REFUSED); Corrupt if the message breaks its own lengths, or if its aliases make
// a loop.
Result<Response> parse_response(std::string_view message, std::string_view query);

}  // namespace gantry::dns
