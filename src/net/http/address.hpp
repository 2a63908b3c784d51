// SPDX-License-Identifier: Apache-2.0
// The address that a server listens at.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::http {

struct Address {
  std::string host;  // "": all addresses of the machine
  std::uint16_t port = 0;
};

// Reads "127.0.0.1:2112", "[::]:9400", ":9400" (all addresses) or "0.0.0.0:0" (a free port).
Result<Address> parse_address(std::string_view text);

}  // namespace gantry::http
