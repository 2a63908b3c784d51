// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/http/client.hpp"

#include <string>

namespace gantry::http {

// As in a URL and in the header Host, without the port that the scheme implies: "[::1]:8443".
std::string authority(const Endpoint& endpoint);

}  // namespace gantry::http
