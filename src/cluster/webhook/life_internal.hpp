// SPDX-License-Identifier: Apache-2.0
// What becomes of authorities and certificates as time passes. Pure but for the keys it makes.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/webhook/keeper.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gantry::webhook {

struct Kept {
  KeyPair authority;  // that signs; without a key: somebody else's
  KeyPair next;       // that will, once all callers trust it; empty: none
  KeyPair serving;
  std::string bundle;
  bool operator==(const Kept&) const = default;
};

// `next_is_trusted`: every configuration has its certificate. Gives back what it got where nothing
// is due.
enum class NextTrusted : std::uint8_t { No, Yes };
Result<Kept> after(const std::optional<Kept>& kept, const KeeperOptions& options,
                   std::int64_t now_unix_s, NextTrusted next_is_trusted);

Kept kept_in(const json::Document& secret);
Result<std::string> new_secret(const KeeperOptions& options, const Kept& kept);
Result<std::string> changed_secret(const json::Document& secret, const Kept& kept);

}  // namespace gantry::webhook
