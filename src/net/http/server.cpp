// SPDX-License-Identifier: Apache-2.0
#include "net/http/server.hpp"

#include "base/core/text.hpp"
#include "net/http/listen_internal.hpp"
#include "net/http/reader.hpp"

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
    if (!take_next() && in_.size() > kRequestLimit)
      reply(plain_text(431, "a request's head may have 8 KiB"), true, false);
  }

  // Starts on the first whole request in the buffer. Returns false if there is none. The socket is
  // read only then, so a client that sends many requests at once fills its own socket buffer and
  // not our memory.
  bool take_next() {
    const auto end = in_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const auto head = in_.substr(0, end + 4);
    in_.erase(0, end + 4);
    take(head);
    return true;
  }

  void take(const std::string& head) {
    const auto request = parse_request_head(head);
    if (!request.ok()) return reply(plain_text(400, request.error().text()), true, false);
    const auto* length = find(request->headers, "Content-Length");
    const bool body = find(request->headers, "Transfer-Encoding") != nullptr ||
                      (length != nullptr && *length != "0");
    if (body || (request->method != "GET" && request->method != "HEAD"))
      return reply(plain_text(405, "only GET and HEAD are answered here"), true, false);
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
    out_ = to_text(response, body ? Part::Whole : Part::Head, keep);
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
    give_time();
    if (in_.empty()) return watch_.wait_for(EPOLLIN);
    // One request per turn of the loop: other connections and the agent's own work come between.
    watch_.wait_for(0);
    next_ = server_.loop_.after({}, [this] {
      if (ticket_ != 0 || !out_.empty()) return;  // a hang-up woke advance() first
      if (!take_next()) watch_.wait_for(EPOLLIN);
    });
  }

  Server& server_;
  std::uint64_t id_;
  sys::UniqueFd socket_;
  sys::Loop::Watch watch_;  // ends before the socket is closed
  sys::Loop::Timer patience_;
  sys::Loop::Timer next_;  // answers the next request that is already in the buffer
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

Server::Server(sys::Loop& loop, sys::UniqueFd socket, std::uint16_t port)
    : loop_(loop), socket_(std::move(socket)), port_(port) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(sys::Loop& loop, const Address& address) {
  GANTRY_TRY(auto listener, listen_at(address));
  std::unique_ptr<Server> server(new Server(loop, std::move(listener.socket), listener.port));
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
  return plain_text(404, known);
}

}  // namespace gantry::http
