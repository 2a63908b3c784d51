// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/client.hpp"

#include "base/core/text.hpp"
#include "net/grpc/connection_internal.hpp"
#include "net/grpc/socket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gantry::grpc {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBacklogPause{5};  // the listener's queue is full; retry soon
constexpr std::size_t kHeaderLimit = std::size_t{16} << 10;

std::vector<Header> headers_for(const std::string& method, std::optional<milliseconds> deadline) {
  std::vector<Header> headers{{":method", "POST"},
                              {":scheme", "http"},
                              {":path", method},
                              {":authority", "localhost"},
                              {"te", "trailers"},
                              {"content-type", "application/grpc"},
                              {"user-agent", "gantry/" GANTRY_VERSION}};
  if (deadline) {
    const auto count = std::clamp<std::int64_t>(deadline->count(), 1, 99'999'999);
    headers.push_back({"grpc-timeout", fmt::format("{}m", count)});
  }
  return headers;
}

CallStatus outcome_of_http2(std::uint32_t error) {
  switch (error) {
    case NGHTTP2_REFUSED_STREAM: return {StatusCode::Unavailable, "the server refused the call"};
    case NGHTTP2_CANCEL: return {StatusCode::Cancelled, "the server cancelled the call"};
    case NGHTTP2_ENHANCE_YOUR_CALM:
      return {StatusCode::ResourceExhausted, "the server asks for fewer calls"};
    default:
      return {StatusCode::Internal, fmt::format("HTTP/2: {}", nghttp2_http2_strerror(error))};
  }
}

}  // namespace

struct Client::Call {
  std::string method;
  std::string request;
  std::optional<milliseconds> deadline;  // none: a stream
  OnAnswer on_answer;
  OnMessage on_message;
  OnEnd on_end;

  std::string body;
  std::string http_status;
  std::optional<std::uint64_t> grpc_status;
  std::string grpc_message;
  std::optional<CallStatus> own_outcome;  // decided by the client; overrides the server's status
  sys::Loop::Timer timer;
  ClientConnection* link = nullptr;
  std::int32_t stream = 0;
  bool done = false;

  void header(std::string_view name, std::string_view value) {
    if (value.size() > kHeaderLimit) return;
    if (name == ":status") http_status = value;
    if (name == "grpc-status") grpc_status = parse_u64(value).value_or(2);
    if (name == "grpc-message") grpc_message = percent_decode(value);
  }

  // Takes the first whole message off the body.
  std::optional<std::string> next_message() {
    if (body.size() < kMessagePrefixSize || body.size() - kMessagePrefixSize < length())
      return std::nullopt;
    const auto size = length();
    std::string message = body.substr(kMessagePrefixSize, size);
    body.erase(0, kMessagePrefixSize + size);
    return message;
  }

  bool over_limit(std::size_t limit) const {
    return body.size() >= kMessagePrefixSize && length() > limit;
  }
  bool compressed() const { return !body.empty() && body[0] != 0; }

  std::size_t length() const {
    std::size_t length = 0;
    for (std::size_t i = 1; i < kMessagePrefixSize; ++i) {
      length = length << 8 | static_cast<unsigned char>(body[i]);
    }
    return length;
  }

  CallStatus outcome(std::uint32_t http2_error) const {
    if (own_outcome) return *own_outcome;
    if (grpc_status) {
      const auto code =
          *grpc_status <= 16 ? static_cast<StatusCode>(*grpc_status) : StatusCode::Unknown;
      return {code, grpc_message};
    }
    if (http2_error != NGHTTP2_NO_ERROR) return outcome_of_http2(http2_error);
    if (!http_status.empty() && http_status != "200") {
      return {StatusCode::Unknown, fmt::format("HTTP status {}", http_status)};
    }
    return {StatusCode::Internal, "the response ended without a grpc-status"};
  }

  // Must be the last step: the callback may destroy the client.
  void finish(CallStatus outcome) {
    if (std::exchange(done, true)) return;
    timer.cancel();
    if (!on_answer) return on_end(outcome);
    std::optional<std::string> message;
    if (outcome.ok()) message = next_message();
    if (outcome.ok() && (!message || !body.empty())) {
      outcome = {StatusCode::Internal, "the response is not one complete message"};
    }
    on_answer(outcome, outcome.ok() ? *std::move(message) : std::string());
  }
};

struct Client::SharedState : public std::enable_shared_from_this<SharedState> {
  sys::Loop& loop;
  std::string path;
  Options options;
  std::vector<std::unique_ptr<ClientConnection>> links;  // the last one is for new calls
  std::vector<std::shared_ptr<Call>> waiting;
  sys::Loop::Timer retry;

  SharedState(sys::Loop& its_loop, std::string its_path, const Options& its_options)
      : loop(its_loop), path(std::move(its_path)), options(its_options) {}
  void start(const std::shared_ptr<Call>& call);
  Result<ClientConnection*> link();
  void forget(ClientConnection* gone);
  void abandon(Call& call);
};

// One connection and the calls on it.
class Client::ClientConnection : public StreamHandler {
 public:
  static Result<std::unique_ptr<ClientConnection>> start(SharedState& client, sys::UniqueFd fd) {
    std::unique_ptr<ClientConnection> made(new ClientConnection(client));
    GANTRY_TRY(made->connection_,
               Connection::start(client.loop, std::move(fd), Connection::Role::Client, *made));
    return made;
  }
  ~ClientConnection() override {
    for (const auto& [stream, call] : calls_) call->link = nullptr;
    if (connection_) connection_->close();
  }
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  bool takes_calls() const { return connection_->may_open(); }

  Status begin(const std::shared_ptr<Call>& call) {
    GANTRY_TRY(call->stream, connection_->open(headers_for(call->method, call->deadline)));
    call->link = this;
    calls_[call->stream] = call;
    connection_->message(call->stream, call->request);
    connection_->finish(call->stream, {});
    call->request = {};
    return {};
  }

  void cancel(Call& call) {
    call.link = nullptr;
    connection_->reset(call.stream, NGHTTP2_CANCEL);
    calls_.erase(call.stream);  // last: it may be the call's last owner
  }

  void on_header(std::int32_t stream, std::string_view name, std::string_view value) override {
    const auto found = calls_.find(stream);
    if (found != calls_.end()) found->second->header(name, value);
  }

  void on_data(std::int32_t stream, std::string_view bytes) override {
    const auto found = calls_.find(stream);
    if (found == calls_.end() || found->second->own_outcome) return;
    const auto call = found->second;
    call->body.append(bytes);
    if (call->over_limit(client_.options.message_limit)) {
      const auto limit = client_.options.message_limit;
      return stop(
          *call, {StatusCode::ResourceExhausted,
                  fmt::format("the response has {} bytes; {} are allowed", call->length(), limit)});
    }
    if (call->compressed())
      return stop(*call, {StatusCode::Internal, "the response is compressed"});
    if (!call->on_message) {
      if (call->body.size() > 2 * kMessagePrefixSize + client_.options.message_limit) {
        stop(*call, {StatusCode::Internal, "the response has more than one message"});
      }
      return;
    }
    while (call->link != nullptr) {  // a callback may cancel the stream and destroy this object
      auto message = call->next_message();
      if (!message) return;
      call->on_message(*std::move(message));
    }
  }

  void on_end(std::int32_t stream) override {
    // The server has ended the call without reading the whole request.
    if (connection_->waiting_bytes(stream) > 0) connection_->reset(stream, NGHTTP2_NO_ERROR);
  }

  void on_stream_closed(std::int32_t stream, std::uint32_t http2_error) override {
    const auto found = calls_.find(stream);
    if (found == calls_.end()) return;
    const auto call = found->second;
    calls_.erase(found);
    call->link = nullptr;
    call->finish(call->outcome(http2_error));
  }

  void on_connection_closed(const std::string& why) override {
    const auto calls = std::move(calls_);
    calls_.clear();
    for (const auto& [stream, call] : calls) call->link = nullptr;
    client_.forget(this);  // destroys this object: use only local variables from here on
    for (const auto& [stream, call] : calls) {
      // A complete answer counts even if the connection ended with it.
      const bool answered = call->grpc_status.has_value();
      call->finish(answered ? call->outcome(NGHTTP2_NO_ERROR)
                            : CallStatus{StatusCode::Unavailable, why});
    }
  }

 private:
  explicit ClientConnection(SharedState& client) : client_(client) {}

  void stop(Call& call, CallStatus outcome) {
    call.own_outcome = std::move(outcome);
    call.body = {};
    connection_->reset(call.stream, NGHTTP2_CANCEL);
  }

  SharedState& client_;
  std::shared_ptr<Connection> connection_;
  std::map<std::int32_t, std::shared_ptr<Call>> calls_;  // in the order in which they began
};

Result<Client::ClientConnection*> Client::SharedState::link() {
  if (!links.empty() && links.back()->takes_calls()) return links.back().get();
  GANTRY_TRY(sys::UniqueFd fd, connect_unix(path));
  GANTRY_TRY(auto made, ClientConnection::start(*this, std::move(fd)));
  links.push_back(std::move(made));
  return links.back().get();
}

void Client::SharedState::start(const std::shared_ptr<Call>& call) {
  auto ready = link();
  if (!ready.ok() && ready.error().sys_errno() == EAGAIN) {
    waiting.push_back(call);
    retry = loop.after(kBacklogPause, [this] {
      const auto again = std::exchange(waiting, {});
      for (const auto& one : again) {
        if (!one->done) start(one);
      }
    });
    return;
  }
  Status begun = ready.ok() ? (*ready)->begin(call) : Status(std::move(ready).error());
  if (begun.ok()) return;
  call->timer = loop.after({}, [call, client = weak_from_this(), text = begun.error().text()] {
    if (!client.expired()) call->finish({StatusCode::Unavailable, text});
  });
}

void Client::SharedState::forget(ClientConnection* gone) {
  std::erase_if(links, [gone](const auto& one) { return one.get() == gone; });
}

void Client::SharedState::abandon(Call& call) {
  call.done = true;
  call.timer.cancel();
  if (call.link != nullptr) call.link->cancel(call);
}

Client::Client(sys::Loop& loop, std::string path) : Client(loop, std::move(path), Options{}) {}

Client::Client(sys::Loop& loop, std::string path, const Options& options)
    : shared_(std::make_shared<SharedState>(loop, std::move(path), options)) {}

Client::~Client() = default;

const std::string& Client::path() const {
  return shared_->path;
}

void Client::call(std::string_view method, std::string request, milliseconds deadline,
                  OnAnswer on_answer) {
  auto call = std::make_shared<Call>();
  call->method = method;
  call->request = std::move(request);
  call->deadline = deadline;
  call->on_answer = std::move(on_answer);
  call->timer = shared_->loop.after(
      deadline, [weak = std::weak_ptr(call), shared = std::weak_ptr(shared_), deadline] {
        const auto late = weak.lock();
        const auto client = shared.lock();
        if (!late || !client || late->done) return;
        client->abandon(*late);
        late->done = false;
        late->finish(
            {StatusCode::DeadlineExceeded, fmt::format("no answer in {} ms", deadline.count())});
      });
  shared_->start(call);
}

Client::Stream Client::stream(std::string_view method, std::string request, OnMessage on_message,
                              OnEnd on_end) {
  auto call = std::make_shared<Call>();
  call->method = method;
  call->request = std::move(request);
  call->on_message = std::move(on_message);
  call->on_end = std::move(on_end);
  shared_->start(call);
  return Stream([weak = std::weak_ptr(call), shared = std::weak_ptr(shared_)] {
    const auto open = weak.lock();
    const auto client = shared.lock();
    if (open && client && !open->done) client->abandon(*open);
  });
}

Client::Stream& Client::Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  end_ = std::exchange(other.end_, nullptr);
  return *this;
}

void Client::Stream::cancel() {
  if (const auto end = std::exchange(end_, nullptr)) end();
}

Result<std::string> call_once(const std::string& path, std::string_view method,
                              const std::string& request, milliseconds deadline,
                              const Client::Options& options) {
  GANTRY_TRY(const auto loop, sys::Loop::make());
  Client client(*loop, path, options);
  std::optional<Result<std::string>> answer;
  client.call(method, request, deadline, [&](const CallStatus& outcome, std::string reply) {
    answer = outcome.ok() ? Result<std::string>(std::move(reply)) : to_error(outcome);
  });
  while (!answer) {
    GANTRY_CHECK(loop->turn(deadline));
  }
  return std::move(*answer).in(fmt::format("{} at {}", method, path));
}

}  // namespace gantry::grpc
