// SPDX-License-Identifier: Apache-2.0
#include "net/kube/informer.hpp"

#include "base/core/clock.hpp"
#include "base/sys/stop_signal.hpp"
#include "net/kube/api.hpp"
#include "net/kube/backoff_internal.hpp"
#include "net/kube/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace gantry::kube {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto kGrace = 10s;      // the server ends a watch; after this extra time we do
constexpr auto kShortWatch = 1s;  // a watch that ends sooner, without an event, is a failure
constexpr unsigned kMaxShortWatches = 3;  // after so many in a row without progress: list again

// The server is unavailable, slow or restarting; afterwards the watch can continue.
bool is_transient(const Error& error) {
  return error.code() == Errc::Busy || error.code() == Errc::Timeout || error.sys_errno() != 0;
}

Error error_in(const json::Document& event) {
  const auto status = event["object"];
  return {Errc::Invalid, fmt::format("the watch ended: {} {}", status["code"].raw(),
                                     status["message"].string().value_or("no reason given"))};
}

}  // namespace

ObjectRef object_ref(const json::Document& object) {
  const auto metadata = object["metadata"];
  return {.uid = metadata["uid"].string_or_empty(),
          .name_space = metadata["namespace"].string_or_empty(),
          .name = metadata["name"].string_or_empty()};
}

class Informer::Impl {
 public:
  Impl(ClientConfig access, InformerOptions options, ResourceEventHandler& follower)
      : options_(std::move(options)),
        follower_(follower),
        api_(std::move(access), options_.request, stop_.fd()),
        backoff_(options_.initial_backoff, options_.max_backoff, options_.seed),
        heard_(Clock::now()),
        thread_([this] { run(); }) {}

  ~Impl() { stop(); }

  void stop() {
    stop_.raise();
    {
      const std::lock_guard lock(mutex_);
    }  // a thread that is about to wait sees the change or is woken
    synced_changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  bool synced() const {
    const std::lock_guard lock(mutex_);
    return counts_.lists > 0;
  }

  bool wait_synced(milliseconds at_most) {
    std::unique_lock lock(mutex_);
    synced_changed_.wait_for(lock, at_most, [this] { return counts_.lists > 0 || stop_.raised(); });
    return counts_.lists > 0;
  }

  milliseconds silence() const {
    const std::lock_guard lock(mutex_);
    return std::chrono::duration_cast<milliseconds>(Clock::now() - heard_);
  }

  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  struct CachedObject {
    std::string uid;
    std::uint64_t seen_by = 0;  // the list that had it last
  };

  void run() {
    while (!stop_.raised()) {
      auto done = version_.empty() || Clock::now() >= next_list_ ? list() : watch();
      if (stop_.raised()) return;
      if (done.ok()) continue;
      const auto pause = std::max<milliseconds>(backoff_.next(), api_.retry_after());
      count([](Counts& counts) { ++counts.failures; });
      follower_.on_error(done.error(), pause);
      stop_.sleep(pause);
    }
  }

  // ---- list

  Status list() {
    ++list_;
    std::string version;
    Status bad;
    const auto get = [&](const std::string& path) -> Result<json::Document> {
      if (!bad.ok()) return bad.error();
      if (stop_.raised()) return Error(Errc::Timeout, "asked to stop");
      return api_.get(path);
    };
    GANTRY_CHECK(each_page(get, options_.path + selectors('?'), [&](json::Value page) {
      if (version.empty()) version = page["metadata"]["resourceVersion"].string_or_empty();
      bad = take_page(page);
    }));
    GANTRY_CHECK(std::move(bad));
    if (version.empty())
      return Error(Errc::Corrupt,
                   fmt::format("{}: the list has no resource version", options_.path));
    if (!stop_.raised()) finish_list(std::move(version));
    return {};
  }

  Status take_page(json::Value page) {
    const auto items = page["items"];
    if (!items.is(json::Kind::Array) && !items.is(json::Kind::Null))
      return Error(Errc::Corrupt,
                   fmt::format("{}: the answer has no list of items", options_.path));
    for (const auto item : items) {
      if (stop_.raised()) return {};
      GANTRY_TRY(const auto object, json::Document::parse(std::string(item.raw())));
      take(object);
    }
    return {};
  }

  void finish_list(std::string version) {
    for (auto known = known_.begin(); known != known_.end();) {
      if (known->second.seen_by == list_) {
        ++known;
        continue;
      }
      const auto gone = ref(known->first, known->second.uid);
      known = known_.erase(known);
      follower_.remove(gone);
    }
    version_ = std::move(version);
    cut_watches_ = 0;
    // A server that answers lists and no watch is asked for the whole list less and less often.
    if (std::exchange(watched_since_list_, false)) backoff_.reset();
    next_list_ = Clock::now() + backoff_.jittered(options_.resync);
    follower_.listed();
    count([](Counts& counts) { ++counts.lists; });
    synced_changed_.notify_all();
  }

  // ---- watch

  Status watch() {
    const auto start = Clock::now();
    const auto time =
        std::max(std::chrono::ceil<std::chrono::seconds>(backoff_.jittered(options_.watch)),
                 std::chrono::seconds(1));
    const auto left = std::chrono::ceil<milliseconds>(next_list_ - start);
    count([](Counts& counts) { ++counts.watches; });
    Status bad;
    bool any = false;
    auto done = api_.watch(
        fmt::format("{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}{}",
                    options_.path, percent_encode(version_), time.count(), selectors('&')),
        [&](const json::Document& event) {
          bad = take_event(event);
          any = any || bad.ok();
          return bad.ok() && !stop_.raised();
        },
        std::min<milliseconds>(time + kGrace, left));
    const bool lasted = Clock::now() - start >= std::min<milliseconds>(kShortWatch, left);
    auto judged = judge(std::move(bad), std::move(done), any || lasted);
    // A server that ends each watch after an event must not keep us busy.
    if (judged.ok() && !lasted) stop_.sleep(backoff_.jittered(options_.initial_backoff));
    return judged;
  }

  // Decides after the end of a watch: continue the watch, or list again.
  Status judge(Status bad, Status done, bool progress) {
    if (progress && bad.ok()) {
      backoff_.reset();
      cut_watches_ = 0;
      watched_since_list_ = true;
    }
    if (!bad.ok()) {
      version_.clear();
      return bad;
    }
    if (done.ok() && progress) return {};
    auto error = done.ok()
                     ? Error(Errc::Busy, fmt::format("{}: the watch ended at once", options_.path))
                     : std::move(done).error();
    const bool cut = error.code() == Errc::Corrupt || error.code() == Errc::TooLarge;
    const bool again = is_transient(error) || (cut && ++cut_watches_ < kMaxShortWatches);
    if (!again) version_.clear();
    return error;
  }

  Status take_event(const json::Document& event) {
    const auto type = event["type"].string_or_empty();
    if (type == "ERROR") return error_in(event);
    GANTRY_TRY(const auto object, json::Document::parse(std::string(event["object"].raw())));
    auto version = object["metadata"]["resourceVersion"].string_or_empty();
    if (version.empty())
      return Error(Errc::Corrupt,
                   fmt::format("{}: a watch event has no resource version", options_.path));
    if (type == "ADDED" || type == "MODIFIED") {
      take(object);
    } else if (type == "DELETED") {
      drop(object_ref(object));
    } else if (type != "BOOKMARK") {
      return Error(Errc::Corrupt, fmt::format("{}: a watch event has the unknown type \"{}\"",
                                              options_.path, type));
    }
    version_ = std::move(version);
    count([](Counts& counts) { ++counts.events; });
    return {};
  }

  // ---- objects

  // The reverse of to_string().
  static ObjectRef ref(const std::string& key, const std::string& uid) {
    const auto slash = key.find('/');
    return {.uid = uid, .name_space = key.substr(0, slash), .name = key.substr(slash + 1)};
  }

  void take(const json::Document& object) {
    auto now = object_ref(object);
    if (now.name.empty() || !now.name.starts_with(options_.name_prefix)) return;
    auto& known = known_[to_string(now)];
    if (!known.uid.empty() && known.uid != now.uid)
      follower_.remove({known.uid, now.name_space, now.name});
    known = {.uid = std::move(now.uid), .seen_by = list_};
    follower_.set(object);
  }

  void drop(const ObjectRef& object) {
    const auto known = known_.find(to_string(object));
    if (known == known_.end() || known->second.uid != object.uid) return;
    known_.erase(known);
    follower_.remove(object);
  }

  std::string selectors(char first) const {
    std::string text;
    const auto add = [&](std::string_view name, const std::string& value) {
      if (value.empty()) return;
      text += fmt::format("{}{}={}", text.empty() ? first : '&', name, percent_encode(value));
    };
    add("fieldSelector", options_.field_selector);
    add("labelSelector", options_.label_selector);
    return text;
  }

  template <class Change>
  void count(const Change& change) {
    const std::lock_guard lock(mutex_);
    const auto before = counts_.events + counts_.lists;
    change(counts_);
    counts_.objects = known_.size();
    if (counts_.events + counts_.lists != before) heard_ = Clock::now();
  }

  const InformerOptions options_;
  ResourceEventHandler& follower_;
  sys::StopSignal stop_;
  Api api_;
  Backoff backoff_;
  std::string version_;  // where the watch continues; "" = a list is needed
  std::uint64_t list_ = 0;
  unsigned cut_watches_ = 0;
  bool watched_since_list_ = true;  // a watch made progress after the last list
  Clock::time_point next_list_;
  std::unordered_map<std::string, CachedObject> known_;

  mutable std::mutex mutex_;  // protects the values that other threads read
  std::condition_variable synced_changed_;
  Counts counts_;
  Clock::time_point heard_;
  std::thread thread_;  // last: it uses all of the above
};

Informer::Informer(ClientConfig access, InformerOptions options, ResourceEventHandler& follower)
    : impl_(std::make_unique<Impl>(std::move(access), std::move(options), follower)) {}
Informer::~Informer() = default;

void Informer::stop() {
  impl_->stop();
}
bool Informer::synced() const {
  return impl_->synced();
}
bool Informer::wait_synced(milliseconds at_most) {
  return impl_->wait_synced(at_most);
}
milliseconds Informer::silence() const {
  return impl_->silence();
}
Informer::Counts Informer::counts() const {
  return impl_->counts();
}

}  // namespace gantry::kube
