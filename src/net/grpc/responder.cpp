// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/responder_internal.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::grpc {
namespace {

constexpr std::size_t kMessageTextLimit = 2048;  // all trailers share one header frame

std::string shortened(std::string_view text) {
  if (text.size() <= kMessageTextLimit) return std::string(text);
  std::size_t length = kMessageTextLimit;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  return std::string(text.substr(0, length)) + " ...";
}

std::vector<Header> trailers_of(const CallStatus& outcome) {
  std::vector<Header> trailers{{"grpc-status", fmt::to_string(static_cast<int>(outcome.code))}};
  if (!outcome.message.empty()) {
    trailers.push_back({"grpc-message", percent_encode(shortened(outcome.message))});
  }
  return trailers;
}

std::vector<Header> initial_headers() {
  return {{":status", "200"}, {"content-type", "application/grpc"}};
}

}  // namespace

Responder::State::~State() {
  end({StatusCode::Internal, "the handler dropped the call without an answer"});
}

std::shared_ptr<Connection> Responder::State::open() {
  if (over) return nullptr;
  auto open = connection.lock();
  return open && !open->closed() ? open : nullptr;
}

void Responder::State::begin(Connection& to) {
  if (!std::exchange(begun, true))
    to.headers(stream, initial_headers(), Connection::StreamEnd::Later);
}

void Responder::State::end(const CallStatus& outcome) {
  const auto to = open();
  over = true;
  on_cancelled = nullptr;
  if (!to) return;
  if (begun) return to->finish(stream, trailers_of(outcome));
  auto all = initial_headers();
  for (auto& trailer : trailers_of(outcome)) all.push_back(std::move(trailer));
  to->headers(stream, all, Connection::StreamEnd::Now);
}

void Responder::answer(std::string_view message) const {
  if (const auto to = state_->open()) {
    state_->begin(*to);
    to->message(state_->stream, message);
  }
  state_->end({});
}

void Responder::fail(const CallStatus& outcome) const {
  state_->end(outcome);
}

void Responder::send(std::string_view message) const {
  const auto to = state_->open();
  if (!to) return;
  state_->begin(*to);
  if (to->waiting_bytes(state_->stream) + message.size() > state_->waiting_limit) {
    // The caller would have to read the waiting messages before the trailers, and it does not read.
    state_->over = true;
    to->reset(state_->stream, NGHTTP2_ENHANCE_YOUR_CALM);
    return;
  }
  to->message(state_->stream, message);
}

void Responder::send_latest(std::string_view message) const {
  const auto to = state_->open();
  if (!to) return;
  state_->begin(*to);
  to->replace_waiting(state_->stream, message);
}

bool Responder::over() const {
  return state_->open() == nullptr;
}

void Responder::on_cancelled(std::function<void()> callback) const {
  if (!state_->over) state_->on_cancelled = std::move(callback);
}

}  // namespace gantry::grpc
