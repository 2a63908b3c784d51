// SPDX-License-Identifier: Apache-2.0
// Makes a certificate authority and signs certificates, in memory: ECDSA P-256. Enough for a
// webhook that creates its own certificate without another program.
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
// For a server with these DNS names; the first one is also its common name.
Result<KeyPair> make_serving_certificate(const KeyPair& authority,
                                         const std::vector<std::string>& names, Validity validity);

// The certificates of a PEM text, separately, at most 16; other contents are ignored.
std::vector<std::string> certificates_in(std::string_view bundle);

Result<Validity> validity_of(std::string_view certificate);  // of the first certificate in the PEM
// Checks that `certificate` is signed by an authority in the PEM bundle, matches its key, covers
// all `names` and is valid at that time. Otherwise the error says why not.
Status check_serving(const KeyPair& serving, std::string_view bundle,
                     const std::vector<std::string>& names, std::int64_t now_unix_s);

}  // namespace gantry::webhook
