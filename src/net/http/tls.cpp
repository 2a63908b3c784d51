// SPDX-License-Identifier: Apache-2.0
// TLS over memory buffers: OpenSSL never sees the socket, so deadlines and signals stay ours.
#include "base/sys/host.hpp"
#include "net/http/connection_internal.hpp"
#include "net/http/openssl.hpp"
#include "net/http/system_trust_internal.hpp"

#include <arpa/inet.h>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

namespace gantry::http {
namespace {

Status trust(SSL_CTX* context, const std::string& pem) {
  if (!pem.empty()) return trust_certificates(context, pem);
  GANTRY_TRY(const auto host, sys::Host::at("/"));
  GANTRY_TRY(const auto authorities, find_system_trust(host, trust_environment()));
  return trust_system(context, host, authorities);
}

Status identify(SSL_CTX* context, const Tls& tls) {
  if (tls.certificate.empty()) return {};
  return use_certificates(context, tls.certificate, tls.key).in("the client's identity");
}

Status expect_name(SSL* session, const Endpoint& endpoint) {
  const auto& name = endpoint.tls.server_name.empty() ? endpoint.host : endpoint.tls.server_name;
  std::array<unsigned char, 16> address{};
  const bool numeric = ::inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
                       ::inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
  const bool set = numeric
                       ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name.c_str()) == 1
                       : SSL_set1_host(session, name.c_str()) == 1 &&
                             SSL_set_tlsext_host_name(session, name.c_str()) == 1;
  if (!set) return ssl_failure(name);
  return {};
}

class TlsConnection : public Connection {
 public:
  TlsConnection(std::unique_ptr<Connection> plain, SslContext context, SslSession session)
      : plain_(std::move(plain)), context_(std::move(context)), session_(std::move(session)) {}

  Status handshake(Deadline deadline) {
    while (true) {
      ERR_clear_error();
      const int done = SSL_connect(session_.get());
      const int why = SSL_get_error(session_.get(), done);
      GANTRY_CHECK(flush(deadline));
      if (done == 1) return {};
      if (why != SSL_ERROR_WANT_READ) return refused();
      GANTRY_TRY(const bool more, fill(deadline));
      if (!more) return Error(Errc::Corrupt, "the peer closed in the middle of the handshake");
    }
  }

  Status write(std::string_view bytes, Deadline deadline) override {
    if (bytes.empty()) return {};
    ERR_clear_error();
    std::size_t taken = 0;  // memory takes everything at once
    if (SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &taken) != 1)
      return ssl_failure("TLS write");
    return flush(deadline);
  }

  Result<std::string> read(Deadline deadline) override {
    std::array<char, 16384> buffer{};
    while (true) {
      ERR_clear_error();
      std::size_t got = 0;
      if (SSL_read_ex(session_.get(), buffer.data(), buffer.size(), &got) == 1)
        return std::string(buffer.data(), got);
      const int why = SSL_get_error(session_.get(), 0);
      GANTRY_CHECK(flush(deadline));
      if (why == SSL_ERROR_ZERO_RETURN) return std::string();
      if (why != SSL_ERROR_WANT_READ) return ssl_failure("TLS read");
      GANTRY_TRY(const bool more, fill(deadline));
      if (!more) return std::string();
    }
  }

  bool is_idle() const override { return plain_->is_idle(); }

 private:
  Error refused() {
    const long verdict = SSL_get_verify_result(session_.get());
    if (verdict == X509_V_OK) return ssl_failure("TLS handshake");
    ERR_clear_error();
    // Not Denied: that is the server's word on our rights, and this one was not listened to.
    return {Errc::Corrupt, fmt::format("the server's certificate is not trusted: {}",
                                       X509_verify_cert_error_string(verdict))};
  }

  Status flush(Deadline deadline) {
    std::array<char, 16384> buffer{};
    auto* out = SSL_get_wbio(session_.get());
    while (true) {
      const int count = BIO_read(out, buffer.data(), static_cast<int>(buffer.size()));
      if (count <= 0) return {};
      GANTRY_CHECK(plain_->write({buffer.data(), static_cast<std::size_t>(count)}, deadline));
    }
  }

  Result<bool> fill(Deadline deadline) {
    GANTRY_TRY(const auto bytes, plain_->read(deadline));
    if (bytes.empty()) return false;
    BIO_write(SSL_get_rbio(session_.get()), bytes.data(), static_cast<int>(bytes.size()));
    return true;
  }

  std::unique_ptr<Connection> plain_;
  SslContext context_;
  SslSession session_;
};

}  // namespace

Result<std::unique_ptr<Connection>> with_tls(std::unique_ptr<Connection> plain,
                                             const Endpoint& endpoint, Deadline deadline) {
  SslContext context(SSL_CTX_new(TLS_client_method()));
  if (!context) return ssl_failure("TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (endpoint.tls.verify) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    GANTRY_CHECK(trust(context.get(), endpoint.tls.authorities));
  }
  GANTRY_CHECK(identify(context.get(), endpoint.tls));
  SslSession session(SSL_new(context.get()));
  if (!session) return ssl_failure("TLS");
  SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  GANTRY_CHECK(expect_name(session.get(), endpoint));
  auto connection =
      std::make_unique<TlsConnection>(std::move(plain), std::move(context), std::move(session));
  GANTRY_CHECK(connection->handshake(deadline));
  return std::unique_ptr<Connection>(std::move(connection));
}

}  // namespace gantry::http
