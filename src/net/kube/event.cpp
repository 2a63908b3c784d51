// SPDX-License-Identifier: Apache-2.0
#include "net/kube/event.hpp"

#include "base/core/clock.hpp"
#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "base/json/writer.hpp"
#include "base/sys/stop_signal.hpp"
#include "net/kube/backoff_internal.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
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
        thread_([this] { run(); }) {}

  ~Impl() {
    {
      std::unique_lock lock(mutex_);
      ending_ = true;
      wake_.notify_all();
      wake_.wait_for(lock, kShutdownGrace, [this] { return done_; });
    }
    stop_.raise();
    thread_.join();
  }

  void write(Event event) {
    if (event.at_unix_s == 0) event.at_unix_s = unix_now();
    const auto key = fmt::format("{}/{}/{}", event.object.uid, event.reason, event.message);
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    const auto said = said_.find(key);
    if (said != said_.end() && now - said->second < kRepeatInterval) return;
    if (said_.size() >= kMaxRemembered) forget(now);
    said_[key] = now;
    if (waiting_.size() == kMaxQueued) waiting_.pop_front();
    waiting_.push_back(std::move(event));
    wake_.notify_all();
  }

 private:
  void forget(Clock::time_point now) {
    std::erase_if(said_, [&](const auto& entry) { return now - entry.second >= kRepeatInterval; });
    if (said_.size() >= kMaxRemembered) said_.clear();
  }

  void run() {
    Backoff pause(1s, 30s, 0);
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty() || stop_.raised()) break;
      auto event = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      const auto told = tell(event);
      if (!told.ok() && on_error_ && !stop_.raised()) on_error_(told.error());
      const bool again = !told.ok() && is_worth_another_try(told.error());
      if (again) {
        stop_.sleep(pause.next());
      } else {
        pause.reset();
      }
      lock.lock();
      if (again && waiting_.size() < kMaxQueued) waiting_.push_front(std::move(event));
    }
    done_ = true;
    wake_.notify_all();
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
  std::condition_variable wake_;
  std::deque<Event> waiting_;
  std::unordered_map<std::string, Clock::time_point> said_;
  bool ending_ = false;
  bool done_ = false;
  std::thread thread_;  // last: it uses all of the above
};

EventRecorder::EventRecorder(ClientConfig access, OnError on_error)
    : impl_(std::make_unique<Impl>(std::move(access), std::move(on_error))) {}
EventRecorder::~EventRecorder() = default;

void EventRecorder::write(Event event) {
  impl_->write(std::move(event));
}

}  // namespace gantry::kube
