// SPDX-License-Identifier: Apache-2.0
// Removes secrets from configuration files and logs.
#pragma once

#include <string>
#include <string_view>

namespace gantry::doctor {

// Replaces the values of keys such as "token" and "client-key-data", "Bearer" tokens, JSON web
// tokens, PEM blocks, and the user and password of URLs by "[removed]". Text that is not a secret
// stays as it is, so JSON stays JSON.
std::string remove_secrets(std::string_view text);

}  // namespace gantry::doctor
