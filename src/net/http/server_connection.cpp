// SPDX-License-Identifier: Apache-2.0
#include "net/http/server_internal.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::http {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::chrono::seconds kDrainTime{2};
// Before the answer only TLS and "100 Continue" write: a client that does not read those is not
// read either.
constexpr std::size_t kUnsentWhileReading = std::size_t{16} << 10;

}  // namespace

ServerConnection::ServerConnection(ServerCore& core, std::uint64_t id, sys::UniqueFd socket,
                                   std::shared_ptr<ClientMemory> client,
                                   std::unique_ptr<ServerTls> tls)
    : core_(core),
      id_(id),
      socket_(std::move(socket)),
      client_(std::move(client)),
      tls_(std::move(tls)),
      reader_({.head = core.options().head_limit, .body = core.options().body_limit}),
      changed_(core.tick()),
      body_hold_(client_),
      out_hold_(client_) {
  ++client_->connections;
}

ServerConnection::~ServerConnection() {
  --client_->connections;
  core_.count_input(counted_input_, 0);
  if (exchange_) exchange_->detach();
}

Status ServerConnection::start() {
  watched_ = EPOLLIN;
  GANTRY_TRY(watch_, core_.loop().watch(socket_.get(), EPOLLIN,
                                        [this](std::uint32_t events) { advance(events); }));
  // A TLS handshake has the time of a request.
  const auto time = tls_ ? core_.options().request_time : core_.options().idle_time;
  timer_ = core_.loop().after(time, [this] { drop(); });
  return {};
}

void ServerConnection::drop() {
  core_.drop(id_);
}

void ServerConnection::end() {
  keep_ = false;
  if (!is_busy()) return drop();
  if (state_ != State::Streaming) return;
  auto output = exchange_->take();
  output.last = true;
  output.overflow ? drop() : stream(std::move(output));
}

void ServerConnection::watch_for_state() {
  constexpr std::uint32_t kIn = EPOLLIN;
  const std::uint32_t out = unsent() > 0 ? std::uint32_t{EPOLLOUT} : 0U;
  std::uint32_t events = 0;
  switch (state_) {
    case State::Reading:
      events = out | (has_next_ || unsent() > kUnsentWhileReading ? 0U : kIn);
      break;
    case State::Waiting: events = EPOLLRDHUP; break;
    case State::Writing: events = EPOLLOUT; break;
    case State::Streaming: events = out | EPOLLRDHUP; break;
    case State::Draining: events = kIn; break;
  }
  if (std::exchange(watched_, events) != events) watch_.wait_for(events);
}

void ServerConnection::advance(std::uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return drop();
  if ((events & EPOLLRDHUP) != 0 && is_busy()) return drop();
  if ((events & EPOLLOUT) != 0) {
    if (!flush()) return;
    if (state_ == State::Writing && unsent() == 0) return finish_answer();
    watch_for_state();
  }
  if ((events & EPOLLIN) != 0 && !is_busy()) receive();
}

// ---- reading

void ServerConnection::receive() {
  std::array<char, kReadSize> buffer{};
  const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop();
  if (state_ == State::Draining) return;
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  if (!tls_) {
    in_.append(bytes);
    return proceed();
  }
  const auto received = tls_->receive(bytes, in_);
  out_ += tls_->output();
  if (!received.ok() || tls_->ended()) {
    if (!received.ok()) core_.count_refusal();
    if (flush()) drop();  // the alert is sent if the socket takes it at once
    return;
  }
  if (flush()) proceed();
}

void ServerConnection::count_input() {
  const auto bytes = in_.size();
  core_.count_input(std::exchange(counted_input_, bytes), bytes);
}

// Goes as far as the bytes that have arrived allow.
void ServerConnection::proceed() {
  count_input();
  const auto state = reader_.feed(in_);
  if (in_.empty()) std::string().swap(in_);  // idle connections take no memory
  count_input();
  if (state == RequestReader::State::Whole) return dispatch();
  if (state == RequestReader::State::Bad) {
    core_.count_refusal();
    return reply(reader_.refusal(), Part::Whole, false);
  }
  if (state == RequestReader::State::Body && !begin_body()) return;
  set_request_timer();
  watch_for_state();
}

bool ServerConnection::begin_body() {
  if (body_hold_.size() == 0 && !core_.hold_body(*this, body_hold_, reader_.body_size())) {
    core_.count_refusal();
    reply(plain_text(503, "too many large requests at once"), Part::Whole, false);
    return false;
  }
  if (!reader_.wants_continue() || std::exchange(told_continue_, true)) return true;
  put(std::string(kContinue));
  return flush();
}

// A request has its time from its first byte on, however the bytes are spread over it.
void ServerConnection::set_request_timer() {
  if (tls_ && !tls_->ready()) return;
  const auto state = reader_.state();
  const bool idle = state == RequestReader::State::Waiting;
  if (!idle && timed_ != RequestReader::State::Waiting) return;
  timed_ = state;
  changed_ = core_.tick();
  const auto& options = core_.options();
  timer_ = core_.loop().after(idle ? options.idle_time : options.request_time, [this] {
    if (reader_.state() == RequestReader::State::Waiting) return drop();
    core_.count_refusal();
    reply(plain_text(408, "the request took too long to arrive"), Part::Whole, false);
  });
}

void ServerConnection::dispatch() {
  keep_ = reader_.keeps_alive();
  chunked_ = reader_.is_http_1_1();
  auto request = reader_.take();
  timed_ = RequestReader::State::Waiting;
  told_continue_ = false;
  part_ = request.method == "HEAD" ? Part::Head : Part::Whole;
  state_ = State::Waiting;
  changed_ = core_.tick();
  timer_.cancel();  // from here on it is the handler's time
  watch_for_state();
  exchange_ =
      std::make_shared<Exchange>(Exchange::Setting{.server = core_.weak_from_this(),
                                                   .connection = id_,
                                                   .memory = client_,
                                                   .stream_limit = core_.options().stream_limit,
                                                   .part = part_});
  const auto refusal =
      core_.dispatch(exchange_, std::move(request), std::exchange(body_hold_, MemoryHold(client_)));
  if (!refusal) return;
  exchange_.reset();
  reply(*refusal, part_, keep_ && refusal->status != 503 && !core_.ending());
}

// ---- writing

void ServerConnection::send_output() {
  if (!exchange_) return;
  auto output = exchange_->take();
  if (output.overflow) {
    core_.count_refusal();
    return drop();
  }
  if (output.answer) {
    exchange_->detach();
    exchange_.reset();
    out_hold_.add(std::move(output.hold));
    return reply(*output.answer, part_, keep_ && !core_.ending());
  }
  if (output.head || state_ == State::Streaming) stream(std::move(output));
}

void ServerConnection::reply(const Response& response, Part part, bool keep) {
  body_hold_.release();
  keep_ = keep;
  put(to_text(response, part, keep));
  start_writing();
}

void ServerConnection::start_writing() {
  state_ = State::Writing;
  timer_ = core_.loop().after(core_.options().request_time, [this] { drop(); });
  if (!flush()) return;
  if (unsent() == 0) return finish_answer();
  watch_for_state();
}

void ServerConnection::stream(Exchange::Output output) {
  if (output.head) {
    state_ = State::Streaming;
    stalled_ = false;
    keep_ = keep_ && chunked_ && !core_.ending();
    put(stream_head(*output.head, chunked_ ? Framing::Chunked : Framing::UntilClose, keep_));
  }
  if (!output.bytes.empty()) {
    out_hold_.add(std::move(output.hold));
    put(chunked_ ? fmt::format("{:x}\r\n{}\r\n", output.bytes.size(), output.bytes) : output.bytes);
  }
  if (output.last || core_.ending()) return end_stream();
  if (flush()) watch_for_state();
}

void ServerConnection::end_stream() {
  if (chunked_ && part_ == Part::Whole) put("0\r\n\r\n");
  exchange_->detach();
  exchange_.reset();
  start_writing();
}

void ServerConnection::put(std::string plain) {
  if (!tls_ && out_.empty()) {
    out_ = std::move(plain);
  } else if (!tls_) {
    out_ += plain;
  } else if (tls_->send(plain).ok()) {
    out_ += tls_->output();
  }
}

bool ServerConnection::flush() {
  const auto before = sent_;
  while (unsent() > 0) {
    const auto sent =
        ::send(socket_.get(), out_.data() + sent_, unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent <= 0) {
      drop();
      return false;
    }
    sent_ += static_cast<std::size_t>(sent);
  }
  const bool progress = sent_ > before;
  if (unsent() == 0) {
    std::string().swap(out_);
    sent_ = 0;
  } else if (sent_ > out_.size() / 2) {
    out_.erase(0, std::exchange(sent_, 0));
    out_.shrink_to_fit();
  }
  if (!out_hold_.resize(out_.size())) {
    core_.count_refusal();
    drop();
    return false;
  }
  if (state_ == State::Streaming) watch_reader(progress);
  return true;
}

// A stream may be silent for as long as its handler likes, but its client may not stop reading.
void ServerConnection::watch_reader(bool progress) {
  exchange_->set_unsent(unsent());
  if (unsent() == 0) {
    timer_.cancel();
    stalled_ = false;
  } else if (progress || !stalled_) {
    stalled_ = true;
    timer_ = core_.loop().after(core_.options().request_time, [this] {
      core_.count_refusal();
      drop();
    });
  }
}

void ServerConnection::finish_answer() {
  if (!keep_) return drain();
  state_ = State::Reading;
  set_request_timer();
  has_next_ = !in_.empty();
  watch_for_state();
  if (!has_next_) return;
  // One request for each turn of the loop: the other connections have theirs in between. The socket
  // is not read until the buffer has no whole request left, so a client that sends many at once
  // fills its own socket buffer and not our memory.
  next_ = core_.loop().after({}, [this] {
    has_next_ = false;
    proceed();
  });
}

// If the socket were closed while bytes of the client are unread, the kernel would reset the
// connection, and the client might lose the answer.
void ServerConnection::drain() {
  if (tls_) {
    tls_->close();
    out_ += tls_->output();
    if (!flush()) return;
  }
  state_ = State::Draining;
  std::string().swap(in_);
  std::string().swap(out_);  // at most a farewell of TLS that the socket did not take
  sent_ = 0;
  count_input();
  ::shutdown(socket_.get(), SHUT_WR);
  watch_for_state();
  timer_ = core_.loop().after(kDrainTime, [this] { drop(); });
}

}  // namespace gantry::http
