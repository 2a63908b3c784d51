// SPDX-License-Identifier: Apache-2.0
// Decides when authorities and certificates are renewed. Pure, except that it makes keys.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/webhook/rotator.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gantry::webhook {

struct SecretContents {
  KeyPair authority;  // signs; without a key, it belongs to another program
  KeyPair next;       // will sign when all callers trust it; empty: none
  KeyPair serving;
  std::string bundle;
  bool operator==(const SecretContents&) const = default;
};

// `next_is_trusted`: every configuration has its certificate. Returns its input if nothing is due.
enum class NextTrusted : std::uint8_t { No, Yes };
Result<SecretContents> next_contents(const std::optional<SecretContents>& contents,
                                     const RotationOptions& options, std::int64_t now_unix_s,
                                     NextTrusted next_is_trusted);

SecretContents parse_secret(const json::Document& secret);
std::string new_secret(const RotationOptions& options, const SecretContents& contents);
Result<std::string> updated_secret(const json::Document& secret, const SecretContents& contents);

}  // namespace gantry::webhook
