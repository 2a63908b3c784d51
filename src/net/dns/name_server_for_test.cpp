// SPDX-License-Identifier: Apache-2.0
#include "net/dns/name_server_for_test.hpp"

#include "base/core/text.hpp"
#include "net/dns/message_reader_internal.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace gantry::dns {
namespace {

// Invalid if the port is in use.
sys::UniqueFd bound_socket(int type, std::string_view address, std::uint16_t port) {
  sys::UniqueFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const auto at = socket_address(*parse_ip(address), port);
  if (::bind(socket.get(), at.get(), at.size) != 0) socket.reset();
  return socket;
}

std::uint16_t bound_port(int socket) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

std::string u16_bytes(std::size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string address_bytes(std::string_view text, std::size_t size) {
  const auto address = parse_ip(text);
  return {reinterpret_cast<const char*>(address->bytes.data()), size};
}

std::string name_text(std::string_view labels) {
  std::string text;
  while (!labels.empty()) {
    const std::size_t size = static_cast<unsigned char>(labels[0]);
    if (!text.empty()) text += '.';
    text += labels.substr(1, size);
    labels.remove_prefix(1 + size);
  }
  return text;
}

}  // namespace

NameServer::NameServer(Handler handler, std::string_view address, std::uint16_t port)
    : handler_(std::move(handler)) {
  // The kernel's free UDP port may be in use by TCP.
  for (int tried = 0; tried < 20 && !tcp_.valid(); ++tried) {
    udp_ = bound_socket(SOCK_DGRAM, address, port);
    port_ = bound_port(udp_.get());
    tcp_ = bound_socket(SOCK_STREAM, address, port_);
  }
  EXPECT_EQ(::listen(tcp_.get(), 4), 0) << address << ":" << port_;
  thread_ = std::thread([this] { serve(); });
}

NameServer::~NameServer() {
  stop_.raise();
  thread_.join();
}

std::vector<ReceivedQuery> NameServer::received() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

std::vector<std::string> NameServer::asked_names() const {
  std::vector<std::string> names;
  for (const auto& query : received())
    if (query.type == RecordType::A) names.push_back(query.name);
  return names;
}

void NameServer::serve() {
  while (!stop_.raised()) {
    std::array<pollfd, 3> polled{{{.fd = stop_.fd(), .events = POLLIN, .revents = 0},
                                  {.fd = udp_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = tcp_.get(), .events = POLLIN, .revents = 0}}};
    ::poll(polled.data(), polled.size(), -1);
    if (polled[1].revents != 0) answer_datagram();
    if (polled[2].revents != 0) answer_connection();
  }
}

void NameServer::answer_datagram() {
  std::string bytes(4096, '\0');
  sockaddr_in from{};
  socklen_t size = sizeof from;
  const auto got = ::recvfrom(udp_.get(), bytes.data(), bytes.size(), 0,
                              reinterpret_cast<sockaddr*>(&from), &size);
  if (got < 0) return;
  bytes.resize(static_cast<std::size_t>(got));
  for (const auto& message : handle(bytes, false, ntohs(from.sin_port)))
    ::sendto(udp_.get(), message.data(), message.size(), 0,
             reinterpret_cast<const sockaddr*>(&from), size);
}

// Until the client closes.
void NameServer::answer_connection() {
  const sys::UniqueFd peer(::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  while (true) {
    std::array<unsigned char, 2> length{};
    if (::recv(peer.get(), length.data(), length.size(), MSG_WAITALL) != 2) return;
    std::string bytes(static_cast<std::size_t>(length[0] << 8 | length[1]), '\0');
    if (::recv(peer.get(), bytes.data(), bytes.size(), MSG_WAITALL) !=
        static_cast<ssize_t>(bytes.size()))
      return;
    for (const auto& message : handle(bytes, true, 0)) {
      const auto frame = u16_bytes(message.size()) + message;
      ::send(peer.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    }
  }
}

std::vector<std::string> NameServer::handle(const std::string& bytes, bool by_tcp,
                                            std::uint16_t source_port) {
  MessageReader reader(bytes);
  (void)reader.header();
  const auto name = reader.name();
  const auto type = reader.u16();
  ReceivedQuery query{.bytes = bytes,
                      .name = name_text(name.value_or("")),
                      .type = static_cast<RecordType>(type.value_or(0)),
                      .by_tcp = by_tcp,
                      .source_port = source_port};
  {
    const std::lock_guard lock(mutex_);
    received_.push_back(query);
  }
  return handler_(query);
}

std::string name_bytes(std::string_view name) {
  std::string bytes;
  for (const auto label : split(name, '.')) {
    bytes += static_cast<char>(label.size());
    bytes += label;
  }
  return bytes + '\0';
}

std::string record(std::string_view name_bytes, std::uint16_t type, std::string_view data) {
  std::string bytes(name_bytes);
  bytes += u16_bytes(type) + u16_bytes(1) + u16_bytes(0) + u16_bytes(60);
  return bytes + u16_bytes(data.size()) + std::string(data);
}

std::string a_record(std::string_view ipv4, std::string_view name_bytes) {
  return record(name_bytes, static_cast<std::uint16_t>(RecordType::A), address_bytes(ipv4, 4));
}

std::string aaaa_record(std::string_view ipv6, std::string_view name_bytes) {
  return record(name_bytes, static_cast<std::uint16_t>(RecordType::Aaaa), address_bytes(ipv6, 16));
}

std::string cname_record(std::string_view name_bytes, std::string_view target_bytes) {
  return record(name_bytes, static_cast<std::uint16_t>(RecordType::Cname), target_bytes);
}

std::string response_to(std::string_view query, const std::vector<std::string>& records,
                        std::uint16_t flags) {
  auto message = std::string(query.substr(0, 2)) + u16_bytes(0x8180U | flags) + u16_bytes(1) +
                 u16_bytes(records.size()) + u16_bytes(0) + u16_bytes(0) +
                 std::string(query.substr(kHeaderSize));
  for (const auto& one : records) message += one;
  return message;
}

}  // namespace gantry::dns
