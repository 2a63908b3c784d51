// SPDX-License-Identifier: Apache-2.0
// A certificate authority and what it signs, made in memory: ECDSA P-256. Enough for a webhook that
// brings its own certificate and needs nobody else's program for it.
#pragma once

#include "base/core/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::webhook {

struct KeyPair {
  std::string certificate;  // PEM
  std::string key;          // PEM, PKCS#8
  bool operator==(const KeyPair&) const = default;
};

struct Validity {
  std::int64_t from_unix_s = 0;
  std::int64_t until_unix_s = 0;
};

Result<KeyPair> make_ca(std::string_view name, Validity validity);
// For a server that answers to these DNS names; the first is its common name too.
Result<KeyPair> make_serving_certificate(const KeyPair& authority,
                                         const std::vector<std::string>& names, Validity validity);

// The certificates of a PEM text, each by itself, at most 16; what is none is left out.
std::vector<std::string> certificates_in(std::string_view bundle);

Result<Validity> validity_of(std::string_view certificate);  // of the first in the PEM
// `certificate` is signed by one of the PEM bundle, fits its key, is for all `names` and is valid
// at that moment. Otherwise why not.
Status check_serving(const KeyPair& serving, std::string_view bundle,
                     const std::vector<std::string>& names, std::int64_t now_unix_s);

}  // namespace gantry::webhook
