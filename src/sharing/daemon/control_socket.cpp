// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/control_socket.hpp"

#include "sharing/daemon/unix_address.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace gantry::daemon {
namespace {

constexpr std::size_t kClients = 256;
constexpr int kBacklog = 64;
constexpr std::chrono::milliseconds kLater{100};

// nullopt: the client has no permission.
std::optional<pid_t> asker(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  if (peer.uid != 0 && peer.uid != ::geteuid()) return std::nullopt;
  return peer.pid;
}

}  // namespace

struct ControlSocket::Client {
  sys::UniqueFd socket;
  pid_t pid = 0;
  std::string heard;
  std::string to_say;
  bool waits = false;      // waits for an answer that comes later
  bool ended = false;      // the client sends no more requests
  sys::Loop::Watch watch;  // must end before the socket
};

ControlSocket::ControlSocket(sys::Loop& loop, std::string path, Callbacks callbacks)
    : loop_(loop), path_(std::move(path)), callbacks_(std::move(callbacks)) {}

ControlSocket::~ControlSocket() {
  if (listener_.valid()) ::unlink(path_.c_str());
}

Result<std::unique_ptr<ControlSocket>> ControlSocket::open(sys::Loop& loop, const std::string& path,
                                                           Callbacks callbacks) {
  std::unique_ptr<ControlSocket> made(new ControlSocket(loop, path, std::move(callbacks)));
  GANTRY_CHECK(made->listen().in(path));
  return made;
}

// Binds the socket under another name and restricts its mode first, so that no process can connect
// before.
Status ControlSocket::listen() {
  const auto beside = path_ + ".new";
  GANTRY_TRY(const auto place, unix_address(beside));
  sys::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return Error::sys(errno, "socket");
  ::unlink(beside.c_str());
  if (::bind(listener.get(), place.get(), sizeof place.address) != 0)
    return Error::sys(errno, "bind");
  if (::chmod(beside.c_str(), 0600) != 0) return Error::sys(errno, "chmod");
  if (::listen(listener.get(), kBacklog) != 0) return Error::sys(errno, "listen");
  GANTRY_TRY(accepting_,
             loop_.watch(listener.get(), EPOLLIN, [this](std::uint32_t) { accept_one(); }));
  if (::rename(beside.c_str(), path_.c_str()) != 0) return Error::sys(errno, "rename");
  listener_ = std::move(listener);
  return {};
}

void ControlSocket::accept_one() {
  sys::UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid() && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    accepting_.wait_for(0);  // no descriptors left: do not try again at once
    retry_ = loop_.after(kLater, [this] { accepting_.wait_for(EPOLLIN); });
  }
  if (!socket.valid() || clients_.size() >= kClients) return;
  const auto pid = asker(socket.get());
  if (!pid) return;
  const Id id = ++last_;
  auto client = std::make_unique<Client>();
  client->pid = *pid;
  auto watch = loop_.watch(socket.get(), EPOLLIN,
                           [this, id](std::uint32_t events) { on_ready(id, events); });
  if (!watch.ok()) return;
  client->socket = std::move(socket);
  client->watch = *std::move(watch);
  clients_[id] = std::move(client);
}

pid_t ControlSocket::pid_of(Id id) const {
  const auto found = clients_.find(id);
  return found == clients_.end() ? 0 : found->second->pid;
}

void ControlSocket::forget(Id id) {
  if (clients_.erase(id) != 0 && callbacks_.gone) callbacks_.gone(id);
}

void ControlSocket::on_ready(Id id, std::uint32_t events) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  auto& client = *found->second;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !read_input(client)) return forget(id);
  if (!answer_lines(id, client) || !write_output(client)) return forget(id);
  if (client.ended && client.to_say.empty())
    return forget(id);  // also a client that waits for an answer
  client.watch.wait_for(client.to_say.empty() ? EPOLLIN : EPOLLOUT);
}

// False if the client disconnected, or its request is too long.
bool ControlSocket::read_input(Client& client) {
  std::array<char, 16'384> piece{};
  const auto got = ::recv(client.socket.get(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) client.ended = true;
  client.heard.append(piece.data(), static_cast<std::size_t>(got));
  return client.heard.size() <= kMaxRequestBytes;
}

// One request at a time: the next is read after the client has received the answer.
bool ControlSocket::answer_lines(Id id, Client& client) {
  while (client.to_say.empty() && !client.waits) {
    const auto end = client.heard.find('\n');
    if (end == std::string::npos) return true;
    const auto line = client.heard.substr(0, end);
    client.heard.erase(0, end + 1);
    auto answer = callbacks_.question(id, line);
    client.waits = !answer;
    if (client.waits) return true;
    client.to_say = *std::move(answer) + '\n';
    if (client.to_say.size() > kMaxResponseBytes || !write_output(client)) return false;
  }
  return true;
}

void ControlSocket::answer(Id id, std::string text) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || !std::exchange(found->second->waits, false)) return;
  found->second->to_say = std::move(text) + '\n';
  on_ready(id, 0);
}

bool ControlSocket::write_output(Client& client) {
  while (!client.to_say.empty()) {
    const auto sent = ::send(client.socket.get(), client.to_say.data(), client.to_say.size(),
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    client.to_say.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace gantry::daemon
