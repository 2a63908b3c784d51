// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/server.hpp"

#include "net/grpc/responder_internal.hpp"
#include "net/grpc/socket.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

namespace gantry::grpc {
namespace {

constexpr std::size_t kMessagesPerConnection =
    4;  // bytes of unfinished requests, as a multiple of the message limit
constexpr std::size_t kPathLimit = 1024;
constexpr std::chrono::milliseconds kAcceptRetryDelay{100};

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

FileId file_at(const std::string& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return {};
  return {st.st_dev, st.st_ino};
}

std::size_t length_in(std::string_view prefix) {
  std::size_t length = 0;
  for (const char c : prefix.substr(1, 4)) length = length << 8 | static_cast<unsigned char>(c);
  return length;
}

// A request is exactly one message.
Result<std::string> message_in(std::string_view body) {
  if (body.size() < kMessagePrefixSize || body.size() - kMessagePrefixSize != length_in(body)) {
    return Error(Errc::Invalid, "the request is not one complete message");
  }
  if (body[0] != 0) return Error(Errc::Unsupported, "compressed messages are not supported");
  return std::string(body.substr(kMessagePrefixSize));
}

}  // namespace

struct Server::SharedState {
  sys::Loop& loop;
  Options options;
  std::map<std::string, std::shared_ptr<const Handler>, std::less<>> handlers;
  std::vector<std::unique_ptr<Session>> sessions;
  sys::UniqueFd listener;
  std::string path;
  FileId file;
  sys::Loop::Watch watch;
  sys::Loop::Timer pause;

  void accept_all();
  Status add(sys::UniqueFd fd);
  void forget(Session* session);
};

// One connection's calls.
class Server::Session : public StreamHandler {
 public:
  static Result<std::unique_ptr<Session>> start(SharedState& server, sys::UniqueFd fd) {
    std::unique_ptr<Session> made(new Session(server));
    GANTRY_TRY(made->connection_,
               Connection::start(server.loop, std::move(fd), Connection::Role::Server, *made));
    return made;
  }
  ~Session() override { connection_->close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Connection& connection() const { return *connection_; }
  void go_away() { connection_->go_away(); }

  bool quiet() const {
    const auto unanswered = [](const auto& entry) {
      const auto reply = entry.second.reply.lock();
      return !entry.second.ended || (reply && !reply->over && !reply->begun);
    };
    return std::none_of(calls_.begin(), calls_.end(), unanswered) && connection_->all_sent();
  }

  void on_header(std::int32_t stream, std::string_view name, std::string_view value) override {
    auto& call = calls_[stream];
    if (value.size() > kPathLimit) return;
    if (name == ":path") call.path = value;
    if (name == ":method") call.is_post = value == "POST";
    if (name == "content-type") call.is_grpc = value.starts_with("application/grpc");
  }

  void on_data(std::int32_t stream, std::string_view bytes) override {
    auto& call = calls_[stream];
    if (call.refused) return;
    call.body.append(bytes);
    waiting_ += bytes.size();
    const auto limit = server_.options.message_limit;
    if (call.body.size() > kMessagePrefixSize + limit) {
      refuse(stream, {StatusCode::ResourceExhausted,
                      fmt::format("the request is larger than {} bytes", limit)});
    } else if (waiting_ > kMessagesPerConnection * (kMessagePrefixSize + limit)) {
      refuse(stream,
             {StatusCode::ResourceExhausted, "too many unfinished calls on this connection"});
    }
  }

  void on_end(std::int32_t stream) override {
    auto& call = calls_[stream];
    if (call.refused || call.ended) return;
    call.ended = true;
    if (!call.is_post || !call.is_grpc) {
      const char* status = call.is_post ? "415" : "405";
      connection_->headers(stream, {{":status", status}}, Connection::StreamEnd::Now);
      return;
    }
    dispatch(stream, call);  // last: the handler may destroy the server and this object
  }

  void on_stream_closed(std::int32_t stream, std::uint32_t) override {
    const auto found = calls_.find(stream);
    if (found == calls_.end()) return;
    waiting_ -= found->second.body.size();
    const auto reply = found->second.reply.lock();
    calls_.erase(found);
    if (reply) hang_up(*reply);
  }

  void on_connection_closed(const std::string&) override {
    const auto calls = std::move(calls_);
    server_.forget(this);  // destroys this object: use only local variables from here on
    for (const auto& [stream, call] : calls) {
      if (const auto reply = call.reply.lock()) hang_up(*reply);
    }
  }

 private:
  struct Call {
    std::string path;
    std::string body;
    bool is_post = false;
    bool is_grpc = false;
    bool ended = false;
    bool refused = false;
    std::weak_ptr<Responder::State> reply;
  };

  explicit Session(SharedState& server) : server_(server) {}

  static void hang_up(Responder::State& reply) {
    if (std::exchange(reply.over, true)) return;
    if (const auto callback = std::exchange(reply.on_cancelled, nullptr)) callback();
  }

  std::shared_ptr<Responder::State> reply_to(std::int32_t stream) {
    return std::make_shared<Responder::State>(
        connection_, stream, kMessagesPerConnection * server_.options.message_limit);
  }

  void refuse(std::int32_t stream, const CallStatus& outcome) {
    auto& call = calls_[stream];
    call.refused = true;
    call.ended = true;
    waiting_ -= call.body.size();
    call.body = {};
    reply_to(stream)->end(outcome);
  }

  void dispatch(std::int32_t stream, Call& call) {
    const auto found = server_.handlers.find(call.path);
    if (found == server_.handlers.end()) {
      return refuse(stream,
                    {StatusCode::Unimplemented, fmt::format("unknown method {}", call.path)});
    }
    const auto request = message_in(call.body);
    if (!request.ok()) return refuse(stream, to_call_status(request.error()));
    waiting_ -= call.body.size();
    call.body = {};
    auto reply = reply_to(stream);
    call.reply = reply;
    const auto handler = found->second;
    (*handler)(*request, Responder(std::move(reply)));
  }

  SharedState& server_;
  std::shared_ptr<Connection> connection_;
  std::unordered_map<std::int32_t, Call> calls_;
  std::size_t waiting_ = 0;  // bytes of incomplete requests
};

void Server::SharedState::accept_all() {
  for (;;) {
    sys::UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      // A connection that cannot be served is closed; its caller notices that at once.
      static_cast<void>(add(std::move(fd)).ok());
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    // Out of descriptors: the listener stays readable, so waiting for it would spin.
    watch.wait_for(0);
    pause = loop.after(kAcceptRetryDelay, [this] { watch.wait_for(EPOLLIN); });
    return;
  }
}

Status Server::SharedState::add(sys::UniqueFd fd) {
  if (sessions.size() >= options.connection_limit) {
    return Error(Errc::Busy, fmt::format("{} connections are open already", sessions.size()));
  }
  GANTRY_TRY(auto session, Session::start(*this, std::move(fd)));
  sessions.push_back(std::move(session));
  return {};
}

void Server::SharedState::forget(Session* session) {
  std::erase_if(sessions, [session](const auto& one) { return one.get() == session; });
}

Server::Server(sys::Loop& loop) : Server(loop, Options{}) {}

Server::Server(sys::Loop& loop, const Options& options)
    : shared_(new SharedState{.loop = loop, .options = options}) {}

Server::~Server() {
  stop_listening();
}

void Server::on(std::string method, Handler handler) {
  shared_->handlers[std::move(method)] = std::make_shared<const Handler>(std::move(handler));
}

Status Server::listen(const std::string& path) {
  GANTRY_TRY(shared_->listener, listen_unix(path));
  shared_->path = path;
  shared_->file = file_at(path);
  GANTRY_TRY(shared_->watch, shared_->loop.watch(shared_->listener.get(), EPOLLIN,
                                                 [shared = shared_.get()](std::uint32_t) {
                                                   shared->accept_all();
                                                 }));
  return {};
}

void Server::stop_listening() {
  if (!shared_->listener.valid()) return;
  shared_->watch.cancel();
  shared_->pause.cancel();
  if (file_at(shared_->path) == shared_->file) ::unlink(shared_->path.c_str());
  shared_->listener.reset();
}

Status Server::adopt(sys::UniqueFd connection) {
  return shared_->add(std::move(connection));
}

void Server::go_away() {
  for (const auto& session : shared_->sessions) session->go_away();
}

std::size_t Server::connection_count() const {
  return shared_->sessions.size();
}

std::vector<int> Server::connections() const {
  std::vector<int> fds;
  for (const auto& session : shared_->sessions) fds.push_back(session->connection().fd());
  return fds;
}

bool Server::quiet() const {
  return std::all_of(shared_->sessions.begin(), shared_->sessions.end(),
                     [](const auto& session) { return session->quiet(); });
}

}  // namespace gantry::grpc
