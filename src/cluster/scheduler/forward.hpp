// SPDX-License-Identifier: Apache-2.0
// A Service in front of two replicas sends every second bind to the one that may not bind: it hands
// the question on to the leader, whose address is in its name in the lease.
#pragma once

#include "base/core/result.hpp"
#include "net/http/client.hpp"
#include "net/http/message.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::scheduler {

inline constexpr std::string_view kForwardedHeader = "X-Gantry-Handed-On";  // never twice

// "NAME@10.0.0.5:12345"; the name alone where `address` is "".
std::string lease_identity(std::string_view name, std::string_view address, std::uint16_t port);
// Where a replica of that name listens; nullopt where its name does not say.
std::optional<http::Endpoint> endpoint_of_identity(std::string_view identity);

Result<http::Response> forward_to_leader(const http::Endpoint& leader, const http::Request& request,
                                         std::chrono::milliseconds timeout);

}  // namespace gantry::scheduler
