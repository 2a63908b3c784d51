// SPDX-License-Identifier: Apache-2.0
// The socket on which the agent takes requests for owners. Only root and the agent's own user may
// use it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::owner_lease {

// Takes the path over by rename, so that a client finds either the old agent or the new one.
Result<sys::UniqueFd> listen(const std::string& path);

// nullopt: no client, or one that is not allowed, whose connection is closed.
std::optional<sys::UniqueFd> accept(int listener);

// NotFound if no agent listens.
Result<sys::UniqueFd> connect(const std::string& path);

Status send(int socket, std::string_view message);

// Never waits. nullopt: no message yet. NotFound: the peer has closed the connection.
Result<std::optional<std::string>> receive(int socket);
// Waits. Timeout, or NotFound as above.
Result<std::string> receive(int socket, std::chrono::milliseconds at_most);

}  // namespace gantry::owner_lease
