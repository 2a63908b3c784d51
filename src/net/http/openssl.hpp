// SPDX-License-Identifier: Apache-2.0
// OpenSSL's objects with owners, for the few files that speak to it.
#pragma once

#include "base/core/result.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string_view>

namespace gantry::http {

template <auto Free>
struct OpensslDeleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using OpensslPtr = std::unique_ptr<T, OpensslDeleter<Free>>;

using SslContext = OpensslPtr<SSL_CTX, SSL_CTX_free>;
using SslSession = OpensslPtr<SSL, SSL_free>;
using SslBuffer = OpensslPtr<BIO, BIO_free>;
using SslKey = OpensslPtr<EVP_PKEY, EVP_PKEY_free>;
using SslCertificate = OpensslPtr<X509, X509_free>;

// OpenSSL's newest reason, and its queue is empty afterwards.
Error ssl_failure(std::string_view doing);

SslBuffer memory_buffer(std::string_view pem);  // reads from it while it is there
SslCertificate read_certificate(BIO* pem);      // the next; empty at the end
Result<SslKey> read_key(std::string_view pem);  // Denied if it is not a key
Status use_certificates(SSL_CTX* context, std::string_view certificates, std::string_view key);

}  // namespace gantry::http
