// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "net/http/system_trust_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace gantry::http {
namespace {

constexpr std::array<std::string_view, 6> kBundles{
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Flatcar, Talos
    "/etc/pki/tls/certs/ca-bundle.crt",                   // RHEL, Fedora
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL, where the link above is missing
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/var/lib/ca-certificates/ca-bundle.pem",             // SUSE, where the link above leads
    "/etc/ssl/cert.pem",                                  // Alpine
};
constexpr std::string_view kDirectory = "/etc/ssl/certs";

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool has_files(const sys::Host& host, std::string_view directory) {
  const auto names = host.list(directory);
  return names.ok() && !names->empty();
}

Result<SystemTrust> named_by(const TrustEnvironment& environment, const sys::Host& host) {
  if (!environment.file.empty() && !host.exists(environment.file))
    return Error(Errc::NotFound,
                 fmt::format("SSL_CERT_FILE names {}, which does not exist", environment.file));
  SystemTrust trust{.bundle = environment.file};
  for (const auto directory : split(environment.directory, ':'))
    if (has_files(host, directory)) trust.directories.emplace_back(directory);
  if (trust.bundle.empty() && trust.directories.empty())
    return Error(Errc::NotFound, fmt::format("SSL_CERT_DIR names {}, which has no certificates",
                                             environment.directory));
  return trust;
}

}  // namespace

TrustEnvironment trust_environment() {
  return {.file = environment_value("SSL_CERT_FILE"),
          .directory = environment_value("SSL_CERT_DIR")};
}

Result<SystemTrust> find_system_trust(const sys::Host& host, const TrustEnvironment& environment) {
  if (!environment.file.empty() || !environment.directory.empty())
    return named_by(environment, host);
  SystemTrust trust;
  const auto bundle = std::find_if(kBundles.begin(), kBundles.end(),
                                   [&](std::string_view path) { return host.exists(path); });
  if (bundle != kBundles.end()) trust.bundle = *bundle;
  if (has_files(host, kDirectory)) trust.directories.emplace_back(kDirectory);
  if (!trust.bundle.empty() || !trust.directories.empty()) return trust;
  return Error(Errc::NotFound,
               fmt::format("found no certificate authorities of this machine in {} or {}",
                           fmt::join(kBundles, ", "), kDirectory))
      .advise(
          "install the package ca-certificates (SUSE: ca-certificates-mozilla), set SSL_CERT_FILE, "
          "or name the server's authority in the kubeconfig (certificate-authority)");
}

Status trust_certificates(SSL_CTX* context, std::string_view pem) {
  const auto text = memory_buffer(pem);
  int found = 0;
  while (const auto certificate = read_certificate(text.get())) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate.get());
    ++found;
  }
  if (found == 0) return Error(Errc::Invalid, "the certificate authority is not in PEM format");
  return {};
}

Status trust_system(SSL_CTX* context, const sys::Host& host, const SystemTrust& trust) {
  if (!trust.bundle.empty()) {
    GANTRY_TRY(const auto pem, host.read(trust.bundle));
    GANTRY_CHECK(trust_certificates(context, pem).in(trust.bundle));
  }
  for (const auto& directory : trust.directories) {
    if (SSL_CTX_load_verify_dir(context, host.outside(directory).c_str()) != 1)
      return ssl_failure(directory);
  }
  return {};
}

}  // namespace gantry::http
