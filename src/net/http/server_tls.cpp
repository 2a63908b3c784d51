// SPDX-License-Identifier: Apache-2.0
#include "net/http/server_tls_internal.hpp"

#include <openssl/err.h>

#include <array>

namespace gantry::http {

Result<std::shared_ptr<SSL_CTX>> server_context(const ServerIdentity& identity) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return ssl_failure("TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  auto used = use_certificates(context.get(), identity.certificates, identity.key);
  if (!used.ok()) return Error(Errc::Invalid, used.error().text());
  return context;
}

Result<std::unique_ptr<ServerTls>> ServerTls::start(SSL_CTX* context) {
  SslSession session(SSL_new(context));
  if (!session) return ssl_failure("TLS");
  SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_accept_state(session.get());
  return std::unique_ptr<ServerTls>(new ServerTls(std::move(session)));
}

Status ServerTls::receive(std::string_view bytes, std::string& plain) {
  BIO_write(SSL_get_rbio(session_.get()), bytes.data(), static_cast<int>(bytes.size()));
  std::array<char, 16384> buffer{};
  while (!ended_) {
    ERR_clear_error();
    std::size_t got = 0;
    if (SSL_read_ex(session_.get(), buffer.data(), buffer.size(), &got) == 1) {
      plain.append(buffer.data(), got);
      continue;
    }
    const int why = SSL_get_error(session_.get(), 0);
    if (why == SSL_ERROR_WANT_READ) return {};
    if (why != SSL_ERROR_ZERO_RETURN) return ssl_failure("TLS");
    ended_ = true;
  }
  return {};
}

Status ServerTls::send(std::string_view plain) {
  if (plain.empty()) return {};
  ERR_clear_error();
  std::size_t taken = 0;  // memory takes everything at once
  if (SSL_write_ex(session_.get(), plain.data(), plain.size(), &taken) != 1)
    return ssl_failure("TLS write");
  return {};
}

void ServerTls::close() {
  ERR_clear_error();
  if (ready()) SSL_shutdown(session_.get());
  ERR_clear_error();
}

std::string ServerTls::output() {
  auto* out = SSL_get_wbio(session_.get());
  std::string bytes(BIO_ctrl_pending(out), '\0');
  if (!bytes.empty()) {
    const int got = BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(std::max(got, 0)));
  }
  return bytes;
}

}  // namespace gantry::http
