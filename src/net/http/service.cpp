// SPDX-License-Identifier: Apache-2.0
#include "net/http/service.hpp"

#include "net/http/service_internal.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace gantry::http {
namespace {

constexpr std::chrono::milliseconds kNoDescriptorsPause{100};
constexpr std::chrono::seconds kLastAnswers{5};

bool fits(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with("/*")) return pattern == path;
  return path.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

Service::Work::Work(const ServiceOptions& options, std::vector<Route> routes,
                    std::unique_ptr<sys::Loop> loop, Listener listener,
                    std::shared_ptr<SSL_CTX> context)
    : options_(options),
      routes_(std::move(routes)),
      loop_(std::move(loop)),
      listener_(std::move(listener)),
      context_(std::move(context)) {}

Status Service::Work::start() {
  GANTRY_TRY(watch_, loop_->watch(listener_.socket.get(), EPOLLIN,
                                  [this](std::uint32_t) { accept_peers(); }));
  for (unsigned i = 0; i < std::max(options_.threads, 1U); ++i)
    workers_.emplace_back([this] { work(); });
  looper_ = std::thread([this] { (void)loop_->run().ok(); });
  return {};
}

Service::Work::~Work() {
  if (looper_.joinable()) {
    loop_->post([this] { begin_end(); });
    looper_.join();
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

Status Service::Work::replace(const ServerIdentity& identity) {
  GANTRY_TRY(auto context, server_context(identity));
  const std::lock_guard lock(mutex_);
  if (!context_) return Error(Errc::Invalid, "a service without TLS has no certificate");
  context_ = std::move(context);
  return {};
}

Service::Counts Service::Work::counts() const {
  return {.connections = connections_, .requests = requests_, .refused = refused_};
}

// ---- connections

void Service::Work::accept_peers() {
  while (true) {
    sys::UniqueFd socket(
        ::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!socket.valid() && errno == EAGAIN) return;
    if (!socket.valid()) {  // out of descriptors: waiting for the listener would spin
      watch_.wait_for(0);
      pause_ = loop_->after(kNoDescriptorsPause, [this] { watch_.wait_for(EPOLLIN); });
      return;
    }
    add(std::move(socket));
  }
}

void Service::Work::add(sys::UniqueFd socket) {
  if (peers_.size() >= options_.connections && !make_room()) {
    ++refused_;
    return;
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::shared_ptr<SSL_CTX> context;
  {
    const std::lock_guard lock(mutex_);
    context = context_;
  }
  std::unique_ptr<ServerTls> tls;
  if (context) {
    auto session = ServerTls::start(context.get());
    if (!session.ok()) return;
    tls = *std::move(session);
  }
  const auto id = next_++;
  auto peer = std::make_unique<ServicePeer>(*this, id, std::move(socket), std::move(tls));
  if (!peer->start().ok()) return;
  peers_.emplace(id, std::move(peer));
  connections_ = peers_.size();
}

// Whoever has waited longest, for a next request or in the middle of a slow one.
bool Service::Work::make_room() {
  const auto oldest = std::min_element(peers_.begin(), peers_.end(), [](auto& a, auto& b) {
    return std::pair(a.second->is_busy(), a.second->since()) <
           std::pair(b.second->is_busy(), b.second->since());
  });
  if (oldest == peers_.end() || oldest->second->is_busy()) return false;
  peers_.erase(oldest);
  return true;
}

void Service::Work::drop(std::uint64_t id) {
  peers_.erase(id);
  connections_ = peers_.size();
  if (ending_ && peers_.empty()) loop_->stop();
}

// Announced is soon: whoever wants most and is still sending makes room for one that wants less, so
// that a few who never send do not keep everybody else out.
bool Service::Work::hold(std::uint64_t id, std::size_t bytes) {
  while (held_ + bytes > options_.memory_limit) {
    auto most = peers_.end();
    for (auto peer = peers_.begin(); peer != peers_.end(); ++peer) {
      if (peer->first == id || peer->second->is_busy() || peer->second->held() <= bytes) continue;
      if (most == peers_.end() || peer->second->held() > most->second->held()) most = peer;
    }
    if (most == peers_.end()) return false;
    ++refused_;
    peers_.erase(most);
    connections_ = peers_.size();
  }
  held_ += bytes;
  return true;
}

void Service::Work::begin_end() {
  ending_ = true;
  watch_.cancel();
  pause_.cancel();
  listener_.socket.reset();
  last_ = loop_->after(kLastAnswers, [this] { loop_->stop(); });
  std::vector<std::uint64_t> all;
  for (const auto& [id, peer] : peers_) all.push_back(id);
  for (const auto id : all)
    if (const auto peer = peers_.find(id); peer != peers_.end()) peer->second->end();
  if (peers_.empty()) loop_->stop();
}

// ---- answers

bool Service::Work::enqueue(std::uint64_t id, Request request) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= options_.waiting) return false;
    jobs_.push_back({id, std::move(request)});
  }
  ++requests_;
  wake_.notify_one();
  return true;
}

void Service::Work::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    auto response = std::make_shared<Response>(respond(job.request));
    loop_->post([this, id = job.peer, response = std::move(response)] {
      if (const auto peer = peers_.find(id); peer != peers_.end()) peer->second->answer(*response);
    });
    lock.lock();
  }
}

Response Service::Work::respond(const Request& request) const {
  const auto path = std::string_view(request.target).substr(0, request.target.find('?'));
  const std::string_view asked = request.method;
  const auto method = asked == "HEAD" ? std::string_view("GET") : asked;
  bool known = false;
  for (const auto& route : routes_) {
    if (!fits(route.path, path)) continue;
    known = true;
    if (route.method != method) continue;
    try {
      return route.handler(request);
    } catch (const std::exception& error) {
      return plain_text(500, error.what());
    }
  }
  if (known) return plain_text(405, fmt::format("{} is not for {}", path, request.method));
  return plain_text(404, "not here");
}

// ---- outside

Service::Service(std::unique_ptr<Work> work) : work_(std::move(work)) {}
Service::~Service() = default;

Result<std::unique_ptr<Service>> Service::start(const ServiceOptions& options,
                                                std::vector<Route> routes) {
  std::shared_ptr<SSL_CTX> context;
  if (options.identity != nullptr) {
    GANTRY_TRY(context, server_context(*options.identity));
  }
  GANTRY_TRY(auto loop, sys::Loop::make());
  GANTRY_TRY(auto listener, listen_at(options.address));
  auto work = std::make_unique<Work>(options, std::move(routes), std::move(loop),
                                     std::move(listener), std::move(context));
  GANTRY_CHECK(work->start());
  return std::unique_ptr<Service>(new Service(std::move(work)));
}

Status Service::replace(const ServerIdentity& identity) {
  return work_->replace(identity);
}
std::uint16_t Service::port() const {
  return work_->port();
}
Service::Counts Service::counts() const {
  return work_->counts();
}

}  // namespace gantry::http
