// SPDX-License-Identifier: Apache-2.0
#include "http/server.hpp"

#include "base/text.hpp"
#include "http/reader.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::http {
namespace {

constexpr std::size_t kPeers = 64;
constexpr std::size_t kRequestLimit = std::size_t{8} << 10;
constexpr std::chrono::seconds kPatience{10};  // for a request, and for the reader of an answer
constexpr std::chrono::milliseconds kNoDescriptorsPause{100};

std::string text_of(const Response& response, bool body, bool keep) {
  auto text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  for (const auto& header : response.headers)
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  text += fmt::format("Content-Length: {}\r\nConnection: {}\r\n\r\n", response.body.size(),
                      keep ? "keep-alive" : "close");
  return body ? text + response.body : text;
}

Result<sys::UniqueFd> socket_at(const addrinfo& address) {
  sys::UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Error::sys(errno, "socket");
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket.get(), 64) != 0)
    return Error::sys(errno, "listen");
  return socket;
}

// IPv6 first, which takes IPv4 callers too: pods of an IPv6 cluster have no other address.
Result<sys::UniqueFd> first_socket(const addrinfo* list) {
  Error last(Errc::NotFound, "no address");
  for (const int family : {AF_INET6, AF_INET}) {
    for (const auto* address = list; address != nullptr; address = address->ai_next) {
      if (address->ai_family != family) continue;
      auto socket = socket_at(*address);
      if (socket.ok()) return socket;
      last = std::move(socket).error();
    }
  }
  return last;
}

Response plain(int status, std::string_view text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = fmt::format("{}\n", text)};
}

}  // namespace

// One connection: reads a head, answers, and reads the next.
class Server::Peer {
 public:
  Peer(Server& server, std::uint64_t id, sys::UniqueFd socket)
      : server_(server), id_(id), socket_(std::move(socket)) {}

  Status start() {
    GANTRY_TRY(watch_,
               server_.loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { advance(); }));
    give_time();
    return {};
  }

  // False when it does not wait for this one.
  bool answer(std::uint64_t ticket, const Response& response) {
    if (ticket != ticket_) return false;
    ticket_ = 0;
    reply(response, body_, keep_);
    return true;
  }

 private:
  void give_time() {
    patience_ = server_.loop_.after(kPatience, [this] { server_.drop(id_); });
  }

  // The last thing that any path through here does may be drop(), which ends this object.
  void advance() {
    if (ticket_ != 0) return server_.drop(id_);  // watched for its end only
    if (!out_.empty()) return send_more();
    std::array<char, 4096> buffer{};
    const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return server_.drop(id_);
    in_.append(buffer.data(), static_cast<std::size_t>(got));
    const auto end = in_.find("\r\n\r\n");
    if (end != std::string::npos) {
      const auto head = in_.substr(0, end + 4);
      in_.erase(0, end + 4);
      return take(head);
    }
    if (in_.size() > kRequestLimit)
      reply(plain(431, "a request's head may have 8 KiB"), true, false);
  }

  void take(const std::string& head) {
    const auto request = parse_request_head(head);
    if (!request.ok()) return reply(plain(400, request.error().text()), true, false);
    const auto* length = find(request->headers, "Content-Length");
    const bool body = find(request->headers, "Transfer-Encoding") != nullptr ||
                      (length != nullptr && *length != "0");
    if (body || (request->method != "GET" && request->method != "HEAD"))
      return reply(plain(405, "only GET and HEAD are answered here"), true, false);
    const auto* connection = find(request->headers, "Connection");
    const bool close = connection != nullptr && to_lower(*connection) == "close";
    if (const auto* page = server_.later(request->target); page != nullptr)
      return wait(*page, request->method == "GET", !close);
    reply(server_.answer(*request), request->method == "GET", !close);
  }

  // The page sets the time from here on.
  void wait(const LaterPage& page, bool body, bool keep) {
    body_ = body;
    keep_ = keep;
    patience_.cancel();
    watch_.wait_for(EPOLLRDHUP);
    ticket_ = server_.next_++;
    page(server_.answer_for(id_, ticket_));
  }

  void reply(const Response& response, bool body, bool keep) {
    out_ = text_of(response, body, keep);
    keep_ = keep;
    send_more();
  }

  void send_more() {
    while (!out_.empty()) {
      const auto sent =
          ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) return watch_.wait_for(EPOLLOUT);
      if (sent <= 0) return server_.drop(id_);
      out_.erase(0, static_cast<std::size_t>(sent));
    }
    if (!keep_) return server_.drop(id_);
    watch_.wait_for(EPOLLIN);
    give_time();
  }

  Server& server_;
  std::uint64_t id_;
  sys::UniqueFd socket_;
  sys::Loop::Watch watch_;  // ends before the socket is closed
  sys::Loop::Timer patience_;
  std::string in_;
  std::string out_;
  bool keep_ = true;
  bool body_ = true;
  std::uint64_t ticket_ = 0;  // of the answer it waits for; 0 = none
};

Result<Request> parse_request_head(std::string_view head) {
  const auto end = head.find('\n');
  const auto words = split(trim(head.substr(0, end)), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.") || !words[1].starts_with('/'))
    return Error(Errc::Invalid, "not an HTTP/1 request");
  Request request{.method = std::string(words[0]), .target = std::string(words[1])};
  if (end != std::string_view::npos) {
    GANTRY_TRY(request.headers, parse_headers(head.substr(end + 1)));
  }
  return request;
}

Result<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : parse_u64(text.substr(colon + 1));
  if (!port || *port > 65535)
    return Error(Errc::Invalid, fmt::format("{}: not of the form [ADDRESS]:PORT", text));
  auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return Address{.host = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

Server::Server(sys::Loop& loop, sys::UniqueFd socket, std::uint16_t port)
    : loop_(loop), socket_(std::move(socket)), port_(port) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(sys::Loop& loop, const Address& address) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const auto shown = fmt::format("{}:{}", address.host, address.port);
  const int bad = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                fmt::to_string(address.port).c_str(), &hints, &list);
  if (bad != 0) return Error(Errc::Invalid, fmt::format("{}: {}", shown, ::gai_strerror(bad)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(list, ::freeaddrinfo);
  GANTRY_TRY(auto socket, first_socket(list).in(shown));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  std::array<char, 8> port{};
  ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port.data(), port.size(),
                NI_NUMERICSERV);
  std::unique_ptr<Server> server(new Server(
      loop, std::move(socket), static_cast<std::uint16_t>(parse_u64(port.data()).value_or(0))));
  GANTRY_CHECK(server->start());
  return server;
}

Status Server::start() {
  GANTRY_TRY(watch_,
             loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { accept_peers(); }));
  return {};
}

void Server::accept_peers() {
  while (true) {
    sys::UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!socket.valid() && errno == EAGAIN) return;
    if (!socket.valid()) {  // out of descriptors: waiting for the listener would spin
      watch_.wait_for(0);
      pause_ = loop_.after(kNoDescriptorsPause, [this] { watch_.wait_for(EPOLLIN); });
      return;
    }
    // The oldest makes room: connections that somebody holds keep neither probe nor scrape out.
    if (peers_.size() == kPeers) peers_.erase(peers_.begin());
    const auto id = next_++;
    auto peer = std::make_unique<Peer>(*this, id, std::move(socket));
    if (peer->start().ok()) peers_.emplace(id, std::move(peer));
  }
}

void Server::drop(std::uint64_t id) {
  peers_.erase(id);
}

const Server::LaterPage* Server::later(std::string_view target) const {
  const auto found = later_.find(target.substr(0, target.find('?')));
  return found == later_.end() ? nullptr : &found->second;
}

Server::Answer Server::answer_for(std::uint64_t id, std::uint64_t ticket) {
  return [self = std::weak_ptr<Server*>(self_), id, ticket](const Response& response) {
    const auto server = self.lock();
    if (!server) return false;
    const auto peer = (*server)->peers_.find(id);
    return peer != (*server)->peers_.end() && peer->second->answer(ticket, response);
  };
}

Response Server::answer(const Request& request) const {
  const std::string_view target = request.target;
  const auto found = pages_.find(target.substr(0, target.find('?')));
  if (found != pages_.end()) return found->second();
  std::string known = "not here; there is";
  for (const auto& [path, page] : pages_) known += " " + path;
  for (const auto& [path, page] : later_) known += " " + path;
  return plain(404, known);
}

}  // namespace gantry::http
