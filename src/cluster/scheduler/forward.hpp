// SPDX-License-Identifier: Apache-2.0
// A Service in front of two replicas sends every second bind to the replica that must not bind.
// That replica forwards the request to the leader, whose address is part of its identity in the
// lease.
#pragma once

#include "base/core/result.hpp"
#include "net/http/client.hpp"
#include "net/http/message.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::scheduler {

// Prevents forwarding twice.
inline constexpr std::string_view kForwardedHeader = "X-Gantry-Handed-On";

// "NAME@10.0.0.5:12345"; only the name if `address` is "".
std::string lease_identity(std::string_view name, std::string_view address, std::uint16_t port);
// The address in an identity; nullopt if it has none.
std::optional<http::Endpoint> endpoint_of_identity(std::string_view identity);

Result<http::Response> forward_to_leader(const http::Endpoint& leader, const http::Request& request,
                                         std::chrono::milliseconds timeout);

}  // namespace gantry::scheduler
