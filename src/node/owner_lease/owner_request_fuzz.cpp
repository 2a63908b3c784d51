// SPDX-License-Identifier: Apache-2.0
#include "node/owner_lease/protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// Any bytes give a message or an error, and a message reads back unchanged.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::owner_lease;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parse_reply(text);
  const auto request = parse_request(text);
  if (!request.ok()) return 0;
  const auto again = parse_request(to_json(*request));
  if (!again.ok() || *again != *request) std::abort();
  return 0;
}
