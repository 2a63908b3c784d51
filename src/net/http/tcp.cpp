// SPDX-License-Identifier: Apache-2.0
#include "base/sys/host.hpp"
#include "base/sys/socket_wait.hpp"
#include "base/sys/unique_fd.hpp"
#include "net/dns/resolver.hpp"
#include "net/http/connection_internal.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::http {
namespace {

class Tcp : public Connection {
 public:
  Tcp(sys::UniqueFd socket, int cancel) : socket_(std::move(socket)), cancel_(cancel) {}

  Status write(std::string_view bytes, Deadline deadline) override {
    return sys::send_all(socket_.get(), bytes, {.deadline = deadline, .cancel = cancel_});
  }

  Result<std::string> read(Deadline deadline) override {
    std::array<char, 16384> buffer{};
    GANTRY_TRY(const auto size,
               sys::receive(socket_.get(), buffer, {.deadline = deadline, .cancel = cancel_}));
    return std::string(buffer.data(), size);
  }

  bool is_idle() const override {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

 private:
  sys::UniqueFd socket_;
  int cancel_;
};

// A peer that vanished without a word (its machine is off) is noticed in half a minute, also by who
// only listens.
void notice_death(int socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Result<sys::UniqueFd> connect_to(const dns::IpAddress& ip, std::uint16_t port,
                                 const sys::WaitLimit& patience) {
  const auto address = dns::socket_address(ip, port);
  GANTRY_TRY(auto socket, sys::connect_stream(address.get(), address.size, patience));
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  notice_death(socket.get());
  return socket;
}

// A name that is not found is Busy, as a server that refuses connections is: callers take NotFound
// for the server's word that an object does not exist.
Result<std::vector<dns::IpAddress>> server_addresses(std::string_view host,
                                                     const sys::WaitLimit& patience) {
  GANTRY_TRY(const auto machine, sys::Host::at("/"));
  auto found = dns::resolve(machine, host, patience);
  if (found.ok() || found.error().code() != Errc::NotFound) return found;
  return Error(Errc::Busy, found.error().cause()).advise(found.error().remedy());
}

}  // namespace

Result<std::unique_ptr<Connection>> connect(const Endpoint& endpoint, Deadline deadline,
                                            int cancel) {
  const auto where = fmt::format("{}:{}", endpoint.host, endpoint.port);
  const sys::WaitLimit patience{.deadline = deadline, .cancel = cancel};
  GANTRY_TRY(const auto addresses, server_addresses(endpoint.host, patience));
  Error last(Errc::NotFound, "no address");
  for (const auto& address : addresses) {
    auto socket = connect_to(address, endpoint.port, patience);
    if (!socket.ok()) {
      last = std::move(socket).error();
      continue;
    }
    std::unique_ptr<Connection> plain = std::make_unique<Tcp>(*std::move(socket), cancel);
    if (!endpoint.secure) return plain;
    return with_tls(std::move(plain), endpoint, deadline).in(where);
  }
  return std::move(last).in(where);
}

}  // namespace gantry::http
