// SPDX-License-Identifier: Apache-2.0
// The flags, the count and the records behind a question that is right. What has another head is
// turned away before any record is read.
#include "net/dns/message.hpp"
#include "net/dns/message_reader_internal.hpp"
#include "net/dns/name_files.hpp"

namespace {

std::string with_right_head(std::string_view query, std::string_view input) {
  auto message = std::string(query);
  message.replace(2, 2, input.substr(0, 2));
  message[2] = static_cast<char>(message[2] | '\x80');  // a response
  message.replace(6, 2, input.substr(2, 2));            // how many records
  return message.append(input.substr(4));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto query = gantry::dns::encode_query(0x1234, "a.example", gantry::dns::RecordType::A);
  (void)gantry::dns::is_response_to(input, query);
  if (size < 4) return 0;
  const auto message = with_right_head(query, input);
  GANTRY_ASSERT(gantry::dns::is_response_to(message, query));
  const auto response = gantry::dns::parse_response(message, query);
  if (!response.ok()) return 0;
  GANTRY_ASSERT(response->addresses.size() <= gantry::dns::kMaxAddresses);
  for (const auto& address : response->addresses) GANTRY_ASSERT(address.family == AF_INET);
  return 0;
}
