// SPDX-License-Identifier: Apache-2.0
#include "net/http/exchange_internal.hpp"
#include "net/http/server_internal.hpp"

namespace gantry::http {

Exchange::Exchange(Setting setting) : setting_(std::move(setting)) {
  output_.hold = MemoryHold(setting_.memory);
}

void Exchange::wake() {
  if (std::exchange(woken_, true)) return;
  if (const auto core = server()) core->wake(setting_.connection);
}

bool Exchange::answer(Response response) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::Open) return false;
  state_ = State::Answered;
  if (!output_.hold.resize(response.body.size())) {
    if (const auto core = server()) core->count_refusal();
    response = plain_text(503, "too many answers are waiting to be read");
  }
  output_.answer = std::move(response);
  wake();
  return true;
}

void Exchange::start_stream(Response head) {
  const auto core = server();
  if (core && !core->add_stream()) {
    core->count_refusal();
    (void)answer(plain_text(503, "too many streams are open"));
    return;
  }
  const std::lock_guard lock(mutex_);
  if (state_ != State::Open) {
    if (core) core->remove_stream();
    return;
  }
  is_stream_ = true;
  state_ = setting_.part == Part::Head ? State::Ended : State::Streaming;
  output_.last = setting_.part == Part::Head;
  output_.head = std::move(head);
  wake();
}

bool Exchange::write(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::Streaming) return false;
  if (bytes.empty()) return true;
  auto& pending = output_.bytes;
  const bool fits = pending.size() + unsent_ + bytes.size() <= setting_.stream_limit &&
                    output_.hold.resize(output_.hold.size() + bytes.size());
  if (fits) {
    pending += bytes;
  } else {
    state_ = State::Overflow;
    output_.overflow = true;
  }
  wake();
  return fits;
}

void Exchange::end_stream() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::Streaming) return;
  state_ = State::Ended;
  output_.last = true;
  wake();
}

void Exchange::abandon() {
  (void)answer(plain_text(500, "the handler gave no answer"));
  end_stream();
}

bool Exchange::gone() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::Gone || state_ == State::Overflow;
}

void Exchange::on_gone(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::Answered || state_ == State::Ended) return;
    if (state_ != State::Gone) {
      callback_ = std::move(callback);
      return;
    }
  }
  callback();
}

Exchange::Output Exchange::take() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  auto taken = std::exchange(output_, {});
  output_.hold = MemoryHold(setting_.memory);
  unsent_ += taken.bytes.size();
  return taken;
}

void Exchange::set_unsent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  unsent_ = bytes;
}

void Exchange::detach() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    callback = std::exchange(callback_, nullptr);
    if (state_ == State::Answered || state_ == State::Ended) callback = nullptr;
    if (state_ == State::Open || state_ == State::Streaming || state_ == State::Overflow)
      state_ = State::Gone;
    output_ = {};
    if (std::exchange(is_stream_, false)) {
      if (const auto core = server()) core->remove_stream();
    }
  }
  if (callback) callback();
}

// ---- handles

ExchangeHandle::ExchangeHandle(std::shared_ptr<Exchange> exchange,
                               std::shared_ptr<std::atomic<std::size_t>> count)
    : exchange_(std::move(exchange)), count_(std::move(count)) {
  if (count_) ++*count_;
}

ExchangeHandle::~ExchangeHandle() {
  exchange_->abandon();
  uncount();
}

void ExchangeHandle::uncount() {
  const std::lock_guard lock(mutex_);
  if (count_) --*count_;
  count_.reset();
}

bool Reply::send(Response response) const {
  return handle_->exchange().answer(std::move(response));
}

Stream Reply::stream(Response head) const {
  handle_->exchange().start_stream(std::move(head));
  handle_->uncount();
  return Stream(handle_);
}

bool Reply::client_gone() const {
  return handle_->exchange().gone();
}

void Reply::on_gone(std::function<void()> callback) const {
  handle_->exchange().on_gone(std::move(callback));
}

bool Stream::write(std::string_view bytes) const {
  return handle_->exchange().write(bytes);
}

void Stream::end() const {
  handle_->exchange().end_stream();
}

bool Stream::client_gone() const {
  return handle_->exchange().gone();
}

void Stream::on_gone(std::function<void()> callback) const {
  handle_->exchange().on_gone(std::move(callback));
}

}  // namespace gantry::http
