// SPDX-License-Identifier: Apache-2.0
#include "net/http/openssl.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

namespace gantry::http {

Error ssl_failure(std::string_view doing) {
  const auto code = ERR_peek_last_error();
  ERR_clear_error();
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  return {Errc::Corrupt, fmt::format("{}: {}", doing, code == 0 ? "refused" : text.data())};
}

SslBuffer memory_buffer(std::string_view pem) {
  return SslBuffer(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

SslCertificate read_certificate(BIO* pem) {
  SslCertificate certificate(PEM_read_bio_X509(pem, nullptr, nullptr, nullptr));
  if (!certificate) ERR_clear_error();  // the end of the text is an error to the reader
  return certificate;
}

Result<SslKey> read_key(std::string_view pem) {
  const auto text = memory_buffer(pem);
  // Without a callback a key with a password would be asked for at the terminal.
  const auto nobody = [](char*, int, int, void*) { return -1; };
  SslKey key(PEM_read_bio_PrivateKey(text.get(), nullptr, nobody, nullptr));
  if (!key) return ssl_failure("the key");
  return key;
}

Status use_certificates(SSL_CTX* context, std::string_view certificates, std::string_view key) {
  const auto text = memory_buffer(certificates);
  const auto own = read_certificate(text.get());
  if (!own) return Error(Errc::Invalid, "the certificate is not in PEM format");
  if (SSL_CTX_use_certificate(context, own.get()) != 1) return ssl_failure("the certificate");
  while (const auto next = read_certificate(text.get()))
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return ssl_failure("the certificates");
  GANTRY_TRY(const auto owned_key, read_key(key));
  if (SSL_CTX_use_PrivateKey(context, owned_key.get()) != 1) return ssl_failure("the key");
  if (SSL_CTX_check_private_key(context) != 1) return ssl_failure("the key of the certificate");
  return {};
}

}  // namespace gantry::http
