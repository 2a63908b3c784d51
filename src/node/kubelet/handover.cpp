// SPDX-License-Identifier: Apache-2.0
// The protocol on one SOCK_SEQPACKET connection: the new agent sends kAsk; the old agent sends
// kSome with the name of a resource and its descriptors, as often as needed, then kAll; the new
// agent sends kKept, and only then the old agent closes its descriptors.
#include "node/kubelet/handover.hpp"

#include "net/grpc/socket.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace gantry::kubelet {
namespace {

using std::chrono::milliseconds;
using sys::UniqueFd;

constexpr std::string_view kAsk = "gantry handover 1: give";
constexpr std::string_view kSome = "gantry handover 1: some of ";
constexpr std::string_view kAll = "gantry handover 1: all";
constexpr std::string_view kKept = "gantry handover 1: kept";
constexpr std::size_t kPerMessage = 128;  // the kernel allows 253
constexpr std::size_t kAtMost = 1024;
constexpr milliseconds kLookEvery{10};
constexpr milliseconds kSilence{10'000};  // a peer that sends nothing for this time is disconnected

Result<UniqueFd> a_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Error::sys(errno, "socket");
  return fd;
}

Status send_text(int socket, std::string_view text) {
  if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0) return Error::sys(errno, "send");
  return {};
}

Status send_some(int socket, const std::string& resource, const std::vector<int>& fds) {
  const auto count = fds.size();
  std::array<char, CMSG_SPACE(kPerMessage * sizeof(int))> control{};
  auto words = std::string(kSome) + resource;
  iovec text{words.data(), words.size()};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), count * sizeof(int));
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return Error::sys(errno, "sendmsg");
  return {};
}

struct HandoverMessage {
  std::string text;
  std::vector<UniqueFd> descriptors;
};

// nullopt: no message yet. An empty text: the peer has closed the connection.
Result<std::optional<HandoverMessage>> receive(int socket) {
  std::array<char, CMSG_SPACE(kPerMessage * sizeof(int))> control{};
  std::array<char, 512> buffer{};  // a resource's name has at most 317 characters
  iovec text{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<HandoverMessage>();
  if (got < 0) return Error::sys(errno, "recvmsg");
  HandoverMessage received{std::string(buffer.data(), static_cast<std::size_t>(got)), {}};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      received.descriptors.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) {
    return Error(Errc::Corrupt, "a message was cut off");
  }
  return std::optional<HandoverMessage>(std::move(received));
}

bool is_trusted_peer(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace

struct IdleConnections::State {
  struct IdleConnection {
    TakenConnection taken;
    sys::Loop::Watch watch;
  };
  sys::Loop& loop;
  std::map<int, IdleConnection> all;

  void drain(int fd) {
    std::array<char, 4096> buffer{};
    const auto got = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) all.erase(fd);
  }
};

IdleConnections::IdleConnections(sys::Loop& loop) : state_(new State{.loop = loop}) {}
IdleConnections::~IdleConnections() = default;

void IdleConnections::keep(std::vector<TakenConnection> connections) {
  for (auto& taken : connections) {
    const int number = taken.fd.get();
    auto watch = state_->loop.watch(
        number, EPOLLIN, [state = state_.get(), number](std::uint32_t) { state->drain(number); });
    if (!watch.ok()) continue;  // not a socket, so no kubelet can be connected to it
    state_->all[number] = State::IdleConnection{std::move(taken), *std::move(watch)};
  }
}

std::size_t IdleConnections::count() const {
  return state_->all.size();
}

std::vector<LentConnection> IdleConnections::connections() const {
  std::vector<LentConnection> found;
  for (const auto& [fd, one] : state_->all) found.push_back({one.taken.resource, fd});
  return found;
}

struct HandoverServer::State {
  sys::Loop& loop;
  Callbacks callbacks;
  Options options;
  std::string path;
  UniqueFd listener;
  sys::Loop::Watch listening;
  UniqueFd peer;
  sys::Loop::Watch talking;
  sys::Loop::Timer timer;
  sys::Loop::Timer silence;
  std::chrono::steady_clock::time_point until;

  void let_go() {
    talking.cancel();
    timer.cancel();
    silence.cancel();
    peer.reset();
    listening.wait_for(EPOLLIN);
  }

  void accept_one() {
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid() || !is_trusted_peer(fd.get())) return;
    auto watch = loop.watch(fd.get(), EPOLLIN, [this](std::uint32_t) { hear(); });
    if (!watch.ok()) return;
    peer = std::move(fd);
    talking = *std::move(watch);
    silence = loop.after(kSilence, [this] { let_go(); });
    listening.wait_for(0);  // one client at a time
  }

  void hear() {
    const auto heard = receive(peer.get());
    if (heard.ok() && !heard->has_value()) return;
    if (heard.ok() && (*heard)->text == kAsk) {
      until = std::chrono::steady_clock::now() + options.max_wait;
      return wait_for_quiet();
    }
    if (heard.ok() && (*heard)->text == kKept) {
      const auto given = callbacks.given;
      let_go();
      return given();  // last, because it may end this process
    }
    let_go();
  }

  void wait_for_quiet() {
    if (callbacks.quiet() || std::chrono::steady_clock::now() >= until) return give();
    timer = loop.after(kLookEvery, [this] { wait_for_quiet(); });
  }

  void give() {
    auto all = callbacks.connections();
    all.resize(std::min(all.size(), kAtMost));
    std::map<std::string, std::vector<int>> by_resource;
    for (const auto& one : all) by_resource[one.resource].push_back(one.fd);
    Status sent;
    for (const auto& [resource, fds] : by_resource) {
      for (std::size_t at = 0; sent.ok() && at < fds.size(); at += kPerMessage) {
        const auto begin = fds.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = std::min(kPerMessage, fds.size() - at);
        sent = send_some(peer.get(), resource, {begin, begin + static_cast<std::ptrdiff_t>(count)});
      }
    }
    if (sent.ok()) sent = send_text(peer.get(), kAll);
    if (!sent.ok()) let_go();
  }
};

HandoverServer::HandoverServer(sys::Loop& loop, Callbacks callbacks)
    : HandoverServer(loop, std::move(callbacks), Options{}) {}

HandoverServer::HandoverServer(sys::Loop& loop, Callbacks callbacks, const Options& options)
    : state_(new State{.loop = loop, .callbacks = std::move(callbacks), .options = options}) {}

HandoverServer::~HandoverServer() = default;  // the path stays: it may belong to the next agent now

Status HandoverServer::listen(const std::string& path) {
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  GANTRY_TRY(const sockaddr_un address, grpc::unix_address(beside));
  GANTRY_TRY(state_->listener, a_socket());
  ::unlink(beside.c_str());
  ::fchmod(state_->listener.get(), 0600);
  if (::bind(state_->listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
          0 ||
      ::listen(state_->listener.get(), 4) != 0) {
    return Error::sys(errno, fmt::format("listen {}", beside));
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    return Error::sys(errno, fmt::format("rename {} to {}", beside, path));
  }
  GANTRY_TRY(state_->listening,
             state_->loop.watch(state_->listener.get(), EPOLLIN,
                                [state = state_.get()](std::uint32_t) { state->accept_one(); }));
  return {};
}

struct Takeover::State {
  OnTaken callback;
  UniqueFd socket;
  sys::Loop::Watch watch;
  sys::Loop::Timer timer;
  std::vector<TakenConnection> taken;

  void finish(Result<std::vector<TakenConnection>> result) {
    watch.cancel();
    timer.cancel();
    socket.reset();
    const auto call = std::exchange(callback, nullptr);
    if (call) call(std::move(result));
  }

  void hear() {
    for (;;) {
      auto heard = receive(socket.get());
      if (!heard.ok()) return finish(std::move(heard).error().in("taking over"));
      if (!heard->has_value()) return;
      auto& message = **heard;
      if (message.text == kAll) break;
      if (message.text.starts_with(kSome)) {
        for (auto& fd : message.descriptors)
          taken.push_back({message.text.substr(kSome.size()), std::move(fd)});
        if (taken.size() <= kAtMost) continue;
        return finish(Error(Errc::Corrupt, "taking over: too many connections"));
      }
      return finish(Error(Errc::Busy, "taking over: the old agent closed the connection"));
    }
    const auto told = send_text(socket.get(), kKept);
    if (!told.ok()) return finish(told.error());
    finish(std::move(taken));
  }
};

Takeover::Takeover(sys::Loop& loop, const std::string& path, milliseconds deadline,
                   OnTaken callback)
    : state_(std::make_shared<State>()) {
  state_->callback = std::move(callback);
  const auto begin = [&]() -> Status {
    GANTRY_TRY(const sockaddr_un address, grpc::unix_address(path));
    GANTRY_TRY(state_->socket, a_socket());
    if (::connect(state_->socket.get(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) != 0) {
      const int err = errno;
      if (err == ECONNREFUSED)
        return Error(Errc::NotFound, fmt::format("no process listens at {}", path));
      return Error::sys(err, fmt::format("connect {}", path));
    }
    if (!is_trusted_peer(state_->socket.get()))
      return Error(Errc::Denied, "another program listens there");
    GANTRY_CHECK(send_text(state_->socket.get(), kAsk));
    GANTRY_TRY(state_->watch, loop.watch(state_->socket.get(), EPOLLIN,
                                         [weak = std::weak_ptr(state_)](std::uint32_t) {
                                           if (const auto state = weak.lock()) state->hear();
                                         }));
    return {};
  };
  auto begun = begin();
  const auto delay = begun.ok() ? deadline : milliseconds{0};
  Error why = begun.ok() ? Error(Errc::Timeout, "taking over: the old agent does not answer")
                         : std::move(begun).error().in("taking over");
  state_->timer = loop.after(delay, [weak = std::weak_ptr(state_), why = std::move(why)] {
    if (const auto state = weak.lock()) state->finish(why);
  });
}

Takeover::~Takeover() = default;

}  // namespace gantry::kubelet
