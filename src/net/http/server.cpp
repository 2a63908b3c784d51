// SPDX-License-Identifier: Apache-2.0
#include "net/http/server.hpp"

#include "net/http/server_internal.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

namespace gantry::http {
namespace {

constexpr std::chrono::milliseconds kNoDescriptorsPause{100};
constexpr int kAcceptsPerTurn = 64;
constexpr std::size_t kHeaderCount = 200;  // the bound of parse_headers

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with("/*")) return pattern == path;
  return path.starts_with(pattern.substr(0, pattern.size() - 1));
}

std::string_view path_of(const Request& request) {
  return std::string_view(request.target).substr(0, request.target.find('?'));
}

std::string_view route_method(const Request& request) {
  return request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
}

std::array<unsigned char, 16> key_of(const sockaddr_storage& address) {
  std::array<unsigned char, 16> key{};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &address, sizeof six);
    std::memcpy(key.data(), &six.sin6_addr, key.size());
  } else if (address.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address, sizeof four);
    key[10] = key[11] = 0xff;
    std::memcpy(&key[12], &four.sin_addr, 4);
  }
  return key;
}

// Threads of the server take no signals: those are for the program's own threads.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

void limit_buffers(int socket, const ServerOptions& options) {
  const auto set = [&](int name, std::size_t bytes) {
    const auto size = static_cast<int>(bytes);
    if (size > 0) ::setsockopt(socket, SOL_SOCKET, name, &size, sizeof size);
  };
  set(SO_SNDBUF, options.send_buffer);
  set(SO_RCVBUF, options.receive_buffer);
}

}  // namespace

// For each connection: the input buffer, which has at most a head and one recv, with a string's
// spare capacity; the request, whose headers are strings of their own; the objects; the socket's
// buffers, of which the kernel takes twice the size that is set. For each unanswered request of a
// client that has gone: the handle that its handler keeps. Then the bodies and unread answers, and
// a second copy of one answer while it gets its head.
std::size_t memory_bound(const ServerOptions& options) {
  const auto input = 2 * (options.head_limit + kReadSize);
  const auto request = 2 * options.head_limit + kHeaderCount * sizeof(Header);
  const auto objects = sizeof(ServerConnection) + sizeof(Exchange) + 1024;
  const auto sockets = 2 * (options.send_buffer + options.receive_buffer);
  return options.connections * (input + request + objects + sockets) +
         options.waiting * (request + objects) + 2 * options.memory_limit;
}

ServerCore::ServerCore(const ServerOptions& options, std::vector<Route> routes,
                       std::unique_ptr<sys::Loop> loop, Listener listener,
                       std::shared_ptr<SSL_CTX> context)
    : options_(options),
      routes_(std::move(routes)),
      memory_(std::make_shared<MemoryBudget>(options.memory_limit)),
      loop_(std::move(loop)),
      listener_(std::move(listener)),
      context_(std::move(context)) {}

Status ServerCore::start() {
  limit_buffers(listener_.socket.get(), options_);  // connections inherit them
  GANTRY_TRY(watch_, loop_->watch(listener_.socket.get(), EPOLLIN,
                                  [this](std::uint32_t) { accept_connections(); }));
  const BlockedSignals blocked;
  for (unsigned i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
  thread_ = std::thread([this] { (void)loop_->run().ok(); });
  return {};
}

void ServerCore::stop() {
  if (thread_.joinable()) {
    loop_->post([this] { begin_end(); });
    thread_.join();
  }
  connections_.clear();
  std::deque<Job> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    left.swap(jobs_);
  }
  job_or_end_.notify_all();
  for (auto& worker : workers_) worker.join();
  workers_.clear();
}

Status ServerCore::replace(const ServerIdentity& identity) {
  GANTRY_TRY(auto context, server_context(identity));
  const std::lock_guard lock(mutex_);
  if (!context_) return Error(Errc::Invalid, "a server without TLS has no certificate");
  context_ = std::move(context);
  return {};
}

Server::Counts ServerCore::counts() const {
  return {.connections = connection_count_,
          .streams = streams_,
          .requests = requests_,
          .refused = refused_,
          .held_bytes = memory_->used() + input_};
}

void ServerCore::begin_end() {
  ending_ = true;
  watch_.cancel();
  pause_.cancel();
  listener_.socket.reset();
  deadline_ = loop_->after(options_.drain_time, [this] { loop_->stop(); });
  std::vector<std::uint64_t> all;
  for (const auto& [id, connection] : connections_) all.push_back(id);
  for (const auto id : all) {
    if (const auto found = connections_.find(id); found != connections_.end()) found->second->end();
  }
  if (connections_.empty()) loop_->stop();
}

// ---- connections

void ServerCore::accept_connections() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    sys::UniqueFd socket(::accept4(listener_.socket.get(), reinterpret_cast<sockaddr*>(&address),
                                   &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!socket.valid() && errno == EAGAIN) return;
    if (!socket.valid()) {  // out of descriptors: waiting for the listener would spin
      watch_.wait_for(0);
      pause_ = loop_->after(kNoDescriptorsPause, [this] { watch_.wait_for(EPOLLIN); });
      return;
    }
    add(std::move(socket), key_of(address));
  }
}

// Handlers that still work for an address keep its entry although it has no connection.
std::shared_ptr<ClientMemory> ServerCore::client(const ClientKey& key) {
  if (clients_.size() > 2 * options_.connections)
    std::erase_if(clients_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = clients_[key];
  auto client = known.lock();
  if (!client) {
    client = std::make_shared<ClientMemory>(memory_, options_.memory_per_address);
    known = client;
  }
  return client;
}

void ServerCore::add(sys::UniqueFd socket, const ClientKey& key) {
  auto owner = client(key);
  const bool address_full = owner->connections >= options_.connections_per_address &&
                            !close_oldest(owner.get(), options_.eviction);
  if (address_full ||
      (connections_.size() >= options_.connections && !close_oldest(owner.get(), Eviction::Idle) &&
       !close_oldest(nullptr, options_.eviction))) {
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
  const auto id = ++last_id_;
  auto connection = std::make_unique<ServerConnection>(*this, id, std::move(socket),
                                                       std::move(owner), std::move(tls));
  if (!connection->start().ok()) return;
  connections_.emplace(id, std::move(connection));
  connection_count_ = connections_.size();
}

// Closes the connection that has been idle longest, or been busy longest if none is idle and
// `eviction` allows it. `client`: only one of this address; nullptr: any. Returns false if there is
// no such connection.
bool ServerCore::close_oldest(const ClientMemory* client, Eviction eviction) {
  auto oldest = connections_.end();
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const auto& connection = *at->second;
    if (client != nullptr && connection.client().get() != client) continue;
    if (eviction == Eviction::Idle && connection.is_busy()) continue;
    const auto order = [](const ServerConnection& c) {
      return std::pair(c.is_busy(), c.changed());
    };
    if (oldest == connections_.end() || order(connection) < order(*oldest->second)) oldest = at;
  }
  if (oldest == connections_.end()) return false;
  connections_.erase(oldest);
  connection_count_ = connections_.size();
  return true;
}

void ServerCore::drop(std::uint64_t id) {
  connections_.erase(id);
  connection_count_ = connections_.size();
  if (ending_ && connections_.empty()) loop_->stop();
}

// Announced bytes count as if they were there. So the connection that announced most, and is still
// sending, is closed for one that needs less: clients that never send cannot keep the others out.
bool ServerCore::hold_body(const ServerConnection& connection, MemoryHold& hold,
                           std::size_t bytes) {
  while (!hold.resize(bytes)) {
    const auto& client = connection.client();
    const bool own_limit = !client->own.has_room(bytes);
    auto largest = connections_.end();
    for (auto at = connections_.begin(); at != connections_.end(); ++at) {
      const auto& other = *at->second;
      if (&other == &connection || other.is_busy() || other.body_bytes() <= bytes) continue;
      if (own_limit && other.client() != client) continue;
      if (largest == connections_.end() || other.body_bytes() > largest->second->body_bytes())
        largest = at;
    }
    if (largest == connections_.end()) return false;
    ++refused_;
    connections_.erase(largest);
    connection_count_ = connections_.size();
  }
  return true;
}

// ---- answers

void ServerCore::wake(std::uint64_t connection) {
  loop_->post([this, connection] {
    if (const auto found = connections_.find(connection); found != connections_.end())
      found->second->send_output();
  });
}

bool ServerCore::add_stream() {
  auto count = streams_.load();
  do {
    if (count >= options_.streams) return false;
  } while (!streams_.compare_exchange_weak(count, count + 1));
  return true;
}

const Route* ServerCore::find_route(const Request& request) const {
  const auto path = path_of(request);
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) {
    return route.method == route_method(request) && matches(route.path, path);
  });
  return found == routes_.end() ? nullptr : &*found;
}

Response ServerCore::refuse(const Request& request) const {
  const auto path = path_of(request);
  std::string allowed;
  std::string paths;
  for (const auto& route : routes_) {
    paths += " " + route.path;
    if (!matches(route.path, path)) continue;
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (allowed.empty())
    return plain_text(404, fmt::format("there is no {}; this server has{}", path, paths));
  auto response = plain_text(405, fmt::format("{} does not allow {}", path, request.method));
  response.headers.push_back({"Allow", allowed});
  return response;
}

std::optional<Response> ServerCore::dispatch(const std::shared_ptr<Exchange>& exchange,
                                             Request request, MemoryHold body) {
  ++requests_;
  const auto* route = find_route(request);
  if (route == nullptr) return refuse(request);
  if (const auto* later = std::get_if<LaterHandler>(&route->handler))
    return call(*later, request, exchange);
  Job job{.reply = std::make_shared<ExchangeHandle>(exchange, nullptr),
          .handler = &std::get<Handler>(route->handler),
          .request = std::move(request),
          .body = std::move(body)};
  if (options_.workers == 0) {
    run(std::move(job));
    return std::nullopt;
  }
  if (enqueue(std::move(job))) return std::nullopt;
  ++refused_;
  return plain_text(503, "too many requests are waiting");
}

std::optional<Response> ServerCore::call(const LaterHandler& handler, const Request& request,
                                         const std::shared_ptr<Exchange>& exchange) {
  if (*unanswered_ >= options_.waiting) {
    ++refused_;
    return plain_text(503, "too many requests are waiting");
  }
  try {
    handler(request, Reply(std::make_shared<ExchangeHandle>(exchange, unanswered_)));
  } catch (const std::exception& error) {
    (void)exchange->answer(plain_text(500, error.what()));
  }
  return std::nullopt;
}

bool ServerCore::enqueue(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= options_.waiting) return false;
    jobs_.push_back(std::move(job));
  }
  job_or_end_.notify_one();
  return true;
}

void ServerCore::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    job_or_end_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    run(std::move(job));
    lock.lock();
  }
}

void ServerCore::run(Job job) {
  Response response;
  try {
    response = (*job.handler)(job.request);
  } catch (const std::exception& error) {
    response = plain_text(500, error.what());
  }
  job.request = {};
  job.body.release();
  (void)job.reply->exchange().answer(std::move(response));
}

// ---- Server

Server::Server(std::shared_ptr<ServerCore> core) : core_(std::move(core)) {}

Server::~Server() {
  core_->stop();
}

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options,
                                              std::vector<Route> routes) {
  std::shared_ptr<SSL_CTX> context;
  if (options.identity != nullptr) {
    GANTRY_TRY(context, server_context(*options.identity));
  }
  GANTRY_TRY(auto loop, sys::Loop::make());
  GANTRY_TRY(auto listener, listen_at(options.address));
  std::unique_ptr<Server> server(new Server(std::make_shared<ServerCore>(
      options, std::move(routes), std::move(loop), std::move(listener), std::move(context))));
  GANTRY_CHECK(server->core_->start());
  return server;
}

Status Server::replace(const ServerIdentity& identity) {
  return core_->replace(identity);
}

std::uint16_t Server::port() const {
  return core_->port();
}

Server::Counts Server::counts() const {
  return core_->counts();
}

}  // namespace gantry::http
