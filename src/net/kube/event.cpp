// SPDX-License-Identifier: Apache-2.0
#include "net/kube/event.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/sys/stop_signal.hpp"
#include "net/kube/pause_internal.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace gantry::kube {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMessageLimit = 1000;
constexpr std::size_t kWaiting = 1000;
constexpr std::size_t kRemembered = 10'000;
constexpr auto kNotAgain = 10min;
constexpr auto kLastWords = 2s;

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string space_of(const Event& event) {
  return event.name_space.empty() ? "default" : event.name_space;
}

}  // namespace

std::string short_message(std::string text) {
  if (text.size() > kMessageLimit) text.resize(kMessageLimit);
  while (!is_utf8(text)) text.pop_back();
  return text;
}

std::string to_json(const Event& event, std::uint64_t number) {
  const auto time = utc(event.at_unix_s);
  const auto host = event.host.empty() ? "" : ",\"host\":" + json::quoted(event.host);
  const auto about_space =
      event.name_space.empty() ? "" : ",\"namespace\":" + json::quoted(event.name_space);
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Event","metadata":{{"name":{},"namespace":{}}},)"
      R"("involvedObject":{{"apiVersion":"v1","kind":{}{},"name":{},"uid":{}}},"reason":{},)"
      R"("type":"{}","message":{},"source":{{"component":{}{}}},"count":1,)"
      R"("firstTimestamp":"{}","lastTimestamp":"{}"}})",
      json::quoted(fmt::format("{}.{:x}.{:x}", event.name, event.at_unix_s, number)),
      json::quoted(space_of(event)), json::quoted(event.kind), about_space,
      json::quoted(event.name), json::quoted(event.uid), json::quoted(event.reason),
      event.type == EventType::Warning ? "Warning" : "Normal",
      json::quoted(short_message(event.message)), json::quoted(event.component), host, time, time);
}

std::string events_path(const Event& event) {
  return fmt::format("/api/v1/namespaces/{}/events", escaped(space_of(event)));
}

class EventWriter::Work {
 public:
  Work(Access access, Trouble trouble)
      : trouble_(std::move(trouble)),
        api_(std::move(access), 5s, stop_.fd()),
        number_(std::random_device{}()),
        thread_([this] { run(); }) {}

  ~Work() {
    {
      std::unique_lock lock(mutex_);
      ending_ = true;
      wake_.notify_all();
      wake_.wait_for(lock, kLastWords, [this] { return done_; });
    }
    stop_.raise();
    thread_.join();
  }

  void write(Event event) {
    if (event.at_unix_s == 0) event.at_unix_s = unix_now();
    const auto key = fmt::format("{}/{}/{}", event.uid, event.reason, event.message);
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    const auto said = said_.find(key);
    if (said != said_.end() && now - said->second < kNotAgain) return;
    if (said_.size() >= kRemembered) forget(now);
    said_[key] = now;
    if (waiting_.size() == kWaiting) waiting_.pop_front();
    waiting_.push_back(std::move(event));
    wake_.notify_all();
  }

 private:
  void forget(Clock::time_point now) {
    std::erase_if(said_, [&](const auto& entry) { return now - entry.second >= kNotAgain; });
    if (said_.size() >= kRemembered) said_.clear();
  }

  void run() {
    Pause pause(1s, 30s, 0);
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty() || stop_.raised()) break;
      auto event = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      const auto told = tell(event);
      if (!told.ok() && trouble_ && !stop_.raised()) trouble_(told.error());
      const bool again = !told.ok() && is_worth_another_try(told.error());
      if (again) {
        stop_.sleep(pause.next());
      } else {
        pause.reset();
      }
      lock.lock();
      if (again && waiting_.size() < kWaiting) waiting_.push_front(std::move(event));
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

  const Trouble trouble_;
  sys::StopSignal stop_;
  Api api_;
  std::uint64_t number_;  // random at first: two replicas and two starts make different names
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Event> waiting_;
  std::unordered_map<std::string, Clock::time_point> said_;
  bool ending_ = false;
  bool done_ = false;
  std::thread thread_;  // last: it uses all of the above
};

EventWriter::EventWriter(Access access, Trouble trouble)
    : work_(std::make_unique<Work>(std::move(access), std::move(trouble))) {}
EventWriter::~EventWriter() = default;

void EventWriter::write(Event event) {
  work_->write(std::move(event));
}

}  // namespace gantry::kube
