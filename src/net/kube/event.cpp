// SPDX-License-Identifier: Apache-2.0
#include "net/kube/event.hpp"

#include "base/core/clock.hpp"
#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "base/json/writer.hpp"
#include "base/sys/background_task.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <unordered_map>

namespace gantry::kube {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMessageLimit = 1000;
constexpr std::size_t kMaxQueued = 1000;
constexpr std::size_t kMaxRemembered = 10'000;
constexpr auto kRepeatInterval = 10min;
constexpr auto kShutdownGrace = 2s;

std::string namespace_of(const Event& event) {
  return event.object.name_space.empty() ? "default" : event.object.name_space;
}

}  // namespace

std::string truncate_message(std::string text) {
  if (text.size() > kMessageLimit) text.resize(kMessageLimit);
  while (!is_utf8(text)) text.pop_back();
  return text;
}

std::string to_json(const Event& event, std::uint64_t number) {
  const auto time = format_utc(event.at_unix_s);
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", "v1");
    out.member("kind", "Event");
    out.object("metadata", [&] {
      out.member("name", fmt::format("{}.{:x}.{:x}", event.object.name, event.at_unix_s, number));
      out.member("namespace", namespace_of(event));
    });
    out.object("involvedObject", [&] {
      out.member("apiVersion", "v1");
      out.member("kind", event.kind);
      if (!event.object.name_space.empty()) out.member("namespace", event.object.name_space);
      out.member("name", event.object.name);
      out.member("uid", event.object.uid);
    });
    out.member("reason", event.reason);
    out.member("type", event.type == EventType::Warning ? "Warning" : "Normal");
    out.member("message", truncate_message(event.message));
    out.object("source", [&] {
      out.member("component", event.component);
      if (!event.host.empty()) out.member("host", event.host);
    });
    out.member("count", 1);
    out.member("firstTimestamp", time);
    out.member("lastTimestamp", time);
  });
  return std::move(out).text();
}

std::string events_path(const Event& event) {
  return fmt::format("/api/v1/namespaces/{}/events", percent_encode(namespace_of(event)));
}

class EventRecorder::Impl {
 public:
  Impl(ClientConfig access, OnError on_error)
      : on_error_(std::move(on_error)),
        api_(std::move(access), 5s, stop_.fd()),
        number_(std::random_device{}()),
        task_({.name = "events",
               .cancel = &stop_,
               .on_error = [this](const Error& error, auto) { report(error); }},
              [this](const std::stop_token& stop) { return send_next(stop); }) {
    task_.start();
  }

  ~Impl() {
    {
      std::unique_lock lock(mutex_);
      all_sent_.wait_for(lock, kShutdownGrace, [this] { return waiting_.empty() && !sending_; });
    }
    task_.stop();
  }

  void write(Event event) {
    if (event.at_unix_s == 0) event.at_unix_s = unix_now();
    const auto key = fmt::format("{}/{}/{}", event.object.uid, event.reason, event.message);
    const auto now = Clock::now();
    {
      const std::lock_guard lock(mutex_);
      const auto said = said_.find(key);
      if (said != said_.end() && now - said->second < kRepeatInterval) return;
      if (said_.size() >= kMaxRemembered) forget(now);
      said_[key] = now;
      if (waiting_.size() == kMaxQueued) waiting_.pop_front();
      waiting_.push_back(std::move(event));
    }
    task_.wake();
  }

 private:
  void forget(Clock::time_point now) {
    std::erase_if(said_, [&](const auto& entry) { return now - entry.second >= kRepeatInterval; });
    if (said_.size() >= kMaxRemembered) said_.clear();
  }

  void report(const Error& error) const {
    if (on_error_) on_error_(error);
  }

  // One event in each run, so that a success ends the longer and longer pauses after failures.
  Status send_next(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (waiting_.empty()) return {};
    auto event = std::move(waiting_.front());
    waiting_.pop_front();
    sending_ = true;
    lock.unlock();
    auto told = tell(event);
    const bool again = !told.ok() && is_worth_another_try(told.error());
    if (!told.ok() && !again && !stop.stop_requested()) report(told.error());
    lock.lock();
    sending_ = false;
    if (again && waiting_.size() < kMaxQueued) waiting_.push_front(std::move(event));
    if (again) return told;
    if (waiting_.empty()) {
      all_sent_.notify_all();
    } else {
      task_.wake();
    }
    return {};
  }

  static bool is_worth_another_try(const Error& error) {
    return error.code() == Errc::Busy || error.code() == Errc::Timeout || error.sys_errno() != 0;
  }

  Status tell(const Event& event) {
    auto made = api_.create(events_path(event), to_json(event, ++number_));
    if (made.ok() || made.error().code() == Errc::Exists) return {};
    return std::move(made).error();
  }

  const OnError on_error_;
  sys::StopSignal stop_;
  Api api_;
  std::uint64_t number_;  // random at first, so that replicas and restarts make different names
  std::mutex mutex_;
  std::condition_variable all_sent_;
  std::deque<Event> waiting_;
  bool sending_ = false;  // one more, which the queue may get back
  std::unordered_map<std::string, Clock::time_point> said_;
  sys::BackgroundTask task_;  // last: it uses all of the above
};

EventRecorder::EventRecorder(ClientConfig access, OnError on_error)
    : impl_(std::make_unique<Impl>(std::move(access), std::move(on_error))) {}
EventRecorder::~EventRecorder() = default;

void EventRecorder::write(Event event) {
  impl_->write(std::move(event));
}

}  // namespace gantry::kube
