// SPDX-License-Identifier: Apache-2.0
#include "net/http/service_internal.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace gantry::http {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::chrono::seconds kFarewell{2};

}  // namespace

ServicePeer::ServicePeer(Service::Work& work, std::uint64_t id, sys::UniqueFd socket,
                         std::unique_ptr<ServerTls> tls)
    : work_(work),
      id_(id),
      socket_(std::move(socket)),
      tls_(std::move(tls)),
      reader_({.body = work.options().body_limit}),
      since_(work.tick()) {}

ServicePeer::~ServicePeer() {
  work_.let_go(held_ + owed_);
}

Status ServicePeer::start() {
  GANTRY_TRY(watch_, work_.loop().watch(socket_.get(), EPOLLIN,
                                        [this](std::uint32_t events) { advance(events); }));
  // A handshake has a request's time; without one there is nothing to wait for but a request.
  const auto time = tls_ ? work_.options().request : work_.options().idle;
  patience_ = work_.loop().after(time, [this] { drop(); });
  return {};
}

void ServicePeer::drop() {
  work_.drop(id_);
}

void ServicePeer::end() {
  if (doing_ == Doing::Reads) return drop();
  keep_ = false;
}

void ServicePeer::advance(std::uint32_t events) {
  switch (doing_) {
    case Doing::Waits:
      if ((events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) drop();  // nobody waits any more
      return;
    case Doing::Answers:
      if (flush() && out_.empty()) said_all();
      return;
    case Doing::Reads:
    case Doing::Leaves: return receive();
  }
}

void ServicePeer::receive() {
  std::array<char, 65536> buffer{};
  const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop();
  if (doing_ == Doing::Leaves) return;
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  if (!tls_) {
    in_.append(bytes);
    return proceed();
  }
  const auto said = tls_->receive(bytes, in_);
  out_ += tls_->output();
  if (!said.ok() || tls_->ended()) {
    if (!said.ok()) work_.count_refusal();
    if (flush()) drop();  // an alert, where the socket takes it at once
    return;
  }
  if (flush()) proceed();
}

// As far as what has come allows.
void ServicePeer::proceed() {
  const auto state = reader_.feed(in_);
  switch (state) {
    case RequestReader::State::Whole: return give_away();
    case RequestReader::State::Bad:
      work_.count_refusal();
      return reply(reader_.refusal(), Part::Whole, false);
    case RequestReader::State::Body:
      if (held_ == 0 && reader_.body_size() > 0) {
        if (!work_.hold(id_, reader_.body_size())) {
          work_.count_refusal();
          return reply(plain_text(503, "too many large requests at once"), Part::Whole, false);
        }
        held_ = reader_.body_size();
      }
      if (reader_.wants_continue() && !told_continue_) {
        told_continue_ = true;
        put(kContinue);
        if (!flush()) return;
      }
      break;
    default: break;
  }
  give_time();
}

// From a request's first byte on it has its time, however the bytes are spread over it.
void ServicePeer::give_time() {
  if (tls_ && !tls_->ready()) return;
  const auto state = reader_.state();
  const bool idle = state == RequestReader::State::Waiting;
  if (!idle && timed_ != RequestReader::State::Waiting) return;
  timed_ = state;
  since_ = work_.tick();
  patience_ = work_.loop().after(idle ? work_.options().idle : work_.options().request, [this] {
    if (reader_.state() == RequestReader::State::Waiting) return drop();
    work_.count_refusal();
    reply(plain_text(408, "a request must come faster"), Part::Whole, false);
  });
}

void ServicePeer::give_away() {
  keep_ = reader_.keeps_alive();
  auto request = reader_.take();
  timed_ = RequestReader::State::Waiting;
  told_continue_ = false;
  part_ = request.method == "HEAD" ? Part::Head : Part::Whole;
  doing_ = Doing::Waits;
  patience_.cancel();  // the handler sets the time from here on
  watch_.wait_for(EPOLLRDHUP);
  if (work_.enqueue(id_, std::move(request))) return;
  work_.count_refusal();
  reply(plain_text(503, "too many requests wait"), part_, false);
}

void ServicePeer::answer(const Response& response) {
  reply(response, part_, keep_ && !work_.ending());
}

void ServicePeer::reply(const Response& response, Part part, bool keep) {
  work_.let_go(std::exchange(held_, 0));
  keep_ = keep;
  doing_ = Doing::Answers;
  patience_ = work_.loop().after(work_.options().request, [this] { drop(); });
  put(to_text(response, part, keep));
  if (flush() && out_.empty()) said_all();
}

void ServicePeer::put(std::string_view plain) {
  if (!tls_) {
    out_ += plain;
  } else if (tls_->send(plain).ok()) {
    out_ += tls_->output();
  }
}

bool ServicePeer::flush() {
  std::size_t done = 0;
  while (done < out_.size()) {
    const auto sent =
        ::send(socket_.get(), out_.data() + done, out_.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent <= 0) {
      drop();
      return false;
    }
    done += static_cast<std::size_t>(sent);
  }
  out_.erase(0, done);
  if (!count_answer()) {
    work_.count_refusal();
    drop();
    return false;
  }
  if (doing_ == Doing::Answers && !out_.empty()) watch_.wait_for(EPOLLOUT);
  return true;
}

// Answers that nobody reads lie in memory as bodies do.
bool ServicePeer::count_answer() {
  const auto size = out_.size();
  if (size > owed_ && !work_.hold(id_, size - owed_)) return false;
  if (size < owed_) work_.let_go(owed_ - size);
  owed_ = size;
  return true;
}

void ServicePeer::said_all() {
  if (!keep_) return leave();
  doing_ = Doing::Reads;
  watch_.wait_for(EPOLLIN);
  give_time();
  if (!in_.empty()) proceed();  // the next was sent before the answer
}

// Closed at once, with bytes of the peer unread, the kernel would take our last words back.
void ServicePeer::leave() {
  if (tls_) {
    tls_->close();
    out_ += tls_->output();
    if (!flush()) return;
  }
  doing_ = Doing::Leaves;
  ::shutdown(socket_.get(), SHUT_WR);
  watch_.wait_for(EPOLLIN);
  patience_ = work_.loop().after(kFarewell, [this] { drop(); });
}

}  // namespace gantry::http
