// SPDX-License-Identifier: Apache-2.0
#include "cluster/webhook/certificate.hpp"

#include "base/core/text.hpp"
#include "net/http/openssl.hpp"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace gantry::webhook {
namespace {

using http::OpensslPtr;
using http::SslCertificate;
using http::SslKey;

constexpr std::size_t kBundleLimit = 16;

enum class Kind : std::uint8_t { Authority, Serving };

std::string pem_text(BIO* memory) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

Result<std::string> to_pem(X509* certificate) {
  const http::SslBuffer memory(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(memory.get(), certificate) != 1) return http::ssl_failure("PEM");
  return pem_text(memory.get());
}

Result<std::string> to_pem(EVP_PKEY* key) {
  const http::SslBuffer memory(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return http::ssl_failure("PEM");
  return pem_text(memory.get());
}

Result<SslCertificate> certificate_of(std::string_view pem) {
  const auto memory = http::memory_buffer(pem);
  auto certificate = http::read_certificate(memory.get());
  if (!certificate) return Error(Errc::Invalid, "not a PEM certificate");
  return certificate;
}

Status set_serial(X509* certificate) {
  const OpensslPtr<BIGNUM, BN_free> number(BN_new());
  // At most 20 bytes, and positive.
  if (BN_rand(number.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr)
    return http::ssl_failure("making a serial number");
  return {};
}

Status set_times(X509* certificate, Validity validity) {
  if (ASN1_TIME_set(X509_getm_notBefore(certificate), validity.from_unix_s) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), validity.until_unix_s) == nullptr)
    return http::ssl_failure("a certificate's time");
  return {};
}

Status set_name(X509* certificate, std::string_view name) {
  const auto common = std::string(name.substr(0, 64));  // the limit of X.520
  if (X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common.data()),
                                 static_cast<int>(common.size()), -1, 0) != 1)
    return http::ssl_failure("a certificate's name");
  return {};
}

Status extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const OpensslPtr<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_nconf_nid(nullptr, &context, what, value.c_str()));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
    return http::ssl_failure(value);
  return {};
}

// DNS names become part of a list that OpenSSL parses.
Status check_names(const std::vector<std::string>& names) {
  if (names.empty()) return Error(Errc::Invalid, "a serving certificate needs a name");
  for (const auto& name : names) {
    const bool plain =
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
    if (name.empty() || name.size() > 253 || !plain)
      return Error(Errc::Invalid, fmt::format("\"{}\" is not a DNS name", name));
  }
  return {};
}

Status extend_all(X509* certificate, X509* issuer, Kind kind,
                  const std::vector<std::string>& names) {
  const auto add = [&](int what, const std::string& value) {
    return extend(certificate, issuer, what, value);
  };
  if (kind == Kind::Authority) {
    GANTRY_CHECK(add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
    GANTRY_CHECK(add(NID_key_usage, "critical,keyCertSign,cRLSign"));
    return add(NID_subject_key_identifier, "hash");
  }
  GANTRY_CHECK(add(NID_basic_constraints, "critical,CA:FALSE"));
  GANTRY_CHECK(add(NID_key_usage, "critical,digitalSignature"));
  GANTRY_CHECK(add(NID_ext_key_usage, "serverAuth"));
  GANTRY_CHECK(add(NID_authority_key_identifier, "keyid:always"));
  std::string list;
  for (const auto& name : names) list += fmt::format("{}DNS:{}", list.empty() ? "" : ",", name);
  return add(NID_subject_alt_name, list);
}

struct Signer {
  X509* certificate = nullptr;  // nullptr: self-signed
  EVP_PKEY* key = nullptr;
};

Result<KeyPair> make(Kind kind, const std::vector<std::string>& names, Validity validity,
                     Signer signer) {
  const SslKey key(EVP_EC_gen("P-256"));
  const SslCertificate certificate(X509_new());
  if (!key || !certificate) return http::ssl_failure("a key");
  X509_set_version(certificate.get(), X509_VERSION_3);
  GANTRY_CHECK(set_serial(certificate.get()));
  GANTRY_CHECK(set_times(certificate.get(), validity));
  GANTRY_CHECK(set_name(certificate.get(), names.front()));
  auto* issuer = signer.certificate != nullptr ? signer.certificate : certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  X509_set_pubkey(certificate.get(), key.get());
  GANTRY_CHECK(extend_all(certificate.get(), issuer, kind, names));
  auto* signing = signer.key != nullptr ? signer.key : key.get();
  if (X509_sign(certificate.get(), signing, EVP_sha256()) == 0)
    return http::ssl_failure("signing a certificate");
  KeyPair pair;
  GANTRY_TRY(pair.certificate, to_pem(certificate.get()));
  GANTRY_TRY(pair.key, to_pem(key.get()));
  return pair;
}

Result<std::int64_t> unix_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return http::ssl_failure("a certificate's time");
  return ::timegm(&parts);
}

Status check_signed(X509* certificate, std::string_view bundle, std::int64_t now_unix_s) {
  const OpensslPtr<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  const auto memory = http::memory_buffer(bundle);
  while (const auto authority = http::read_certificate(memory.get()))
    X509_STORE_add_cert(store.get(), authority.get());
  const OpensslPtr<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr);
  auto* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(parameters, now_unix_s);
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
  const bool good = X509_verify_cert(context.get()) == 1;
  const int why = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (!good) return Error(Errc::Invalid, X509_verify_cert_error_string(why));
  return {};
}

}  // namespace

Result<KeyPair> make_ca(std::string_view name, Validity validity) {
  return make(Kind::Authority, {std::string(name)}, validity, {});
}

Result<KeyPair> make_serving_certificate(const KeyPair& authority,
                                         const std::vector<std::string>& names, Validity validity) {
  GANTRY_CHECK(check_names(names));
  GANTRY_TRY(const auto certificate, certificate_of(authority.certificate).in("the authority"));
  GANTRY_TRY(const auto key, http::read_key(authority.key).in("the authority"));
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    return http::ssl_failure("the authority's key");
  return make(Kind::Serving, names, validity, {certificate.get(), key.get()});
}

std::vector<std::string> certificates_in(std::string_view bundle) {
  std::vector<std::string> all;
  const auto memory = http::memory_buffer(bundle);
  while (all.size() < kBundleLimit) {
    const auto certificate = http::read_certificate(memory.get());
    if (!certificate) break;
    if (auto pem = to_pem(certificate.get()); pem.ok()) all.push_back(*std::move(pem));
  }
  return all;
}

Result<Validity> validity_of(std::string_view certificate) {
  GANTRY_TRY(const auto read, certificate_of(certificate));
  Validity validity;
  GANTRY_TRY(validity.from_unix_s, unix_of(X509_get0_notBefore(read.get())));
  GANTRY_TRY(validity.until_unix_s, unix_of(X509_get0_notAfter(read.get())));
  return validity;
}

Status check_serving(const KeyPair& serving, std::string_view bundle,
                     const std::vector<std::string>& names, std::int64_t now_unix_s) {
  GANTRY_TRY(const auto certificate, certificate_of(serving.certificate));
  GANTRY_TRY(const auto key, http::read_key(serving.key));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return Error(Errc::Invalid, "the key does not belong to the certificate");
  }
  for (const auto& name : names) {
    if (X509_check_host(certificate.get(), name.data(), name.size(), 0, nullptr) != 1)
      return Error(Errc::Invalid, fmt::format("the certificate is not for {}", name));
  }
  return check_signed(certificate.get(), bundle, now_unix_s);
}

}  // namespace gantry::webhook
