// SPDX-License-Identifier: Apache-2.0
// Where a machine keeps the certificate authorities that it trusts. OpenSSL is linked statically
// and knows only the place of the distribution that it was built on, so Gantry looks itself.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "net/http/openssl.hpp"

#include <string>
#include <vector>

namespace gantry::http {

struct SystemTrust {
  std::string bundle;                    // a file with all certificates in PEM; "" = none
  std::vector<std::string> directories;  // with one file for each, named by hash
};

// The values of SSL_CERT_FILE and SSL_CERT_DIR, which programs that use OpenSSL obey. "" = not set.
struct TrustEnvironment {
  std::string file;
  std::string directory;  // may be a list with colons
};
TrustEnvironment trust_environment();

// If the environment names something, only that. Otherwise the first bundle of the well-known
// places, and /etc/ssl/certs. NotFound if there is nothing at all: the text names the places.
Result<SystemTrust> find_system_trust(const sys::Host& host, const TrustEnvironment& environment);

// Has the context trust these authorities.
Status trust_system(SSL_CTX* context, const sys::Host& host, const SystemTrust& trust);

// Has the context trust the certificates of a PEM text. Invalid if it has none.
Status trust_certificates(SSL_CTX* context, std::string_view pem);

}  // namespace gantry::http
