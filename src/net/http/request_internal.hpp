// SPDX-License-Identifier: Apache-2.0
// A request as the clients of HTTP and WebSocket send it.
#pragma once

#include "base/core/result.hpp"
#include "net/http/client.hpp"

#include <string>

namespace gantry::http {

// Invalid if a value would end its line: a token file is not to be trusted with that.
Status check_head(const Request& request);

std::string format_request(const Request& request, const Endpoint& endpoint);

}  // namespace gantry::http
