// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/registrar.hpp"

#include "base/core/clock.hpp"
#include "base/core/unix_time.hpp"
#include "net/grpc/client.hpp"
#include "node/kubelet/directory_internal.hpp"
#include "node/kubelet/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

namespace gantry::kubelet {
namespace {

using std::chrono::milliseconds;
using EventKind = RegistrarEvent::Kind;

// After our socket was removed: often the kubelet's socket is removed next.
constexpr milliseconds kSettling{50};
constexpr milliseconds kSettled{5'000};     // a registration that lasted this long was good
constexpr milliseconds kNotWatched{2'000};  // registered, but the kubelet did not ask for the list
constexpr milliseconds kLastDoubt{300'000};
constexpr int kNameTries = 16;

Allocatable::mapped_type healthy_ids(const Plugin& plugin) {
  Allocatable::mapped_type ids;
  for (const auto& device : plugin.devices()) {
    if (device.healthy) ids.insert(device.id);
  }
  return ids;
}

}  // namespace

struct Registrar::State : public std::enable_shared_from_this<State> {
  enum class Phase : std::uint8_t { Waiting, Registering, Registered };

  struct Entry {
    Plugin* plugin = nullptr;
    Phase phase = Phase::Waiting;
    std::uint64_t attempt = 0;  // an answer to an older attempt is ignored
    bool new_socket = true;     // the next attempt must not reuse the last socket
    Clock::time_point since;    // since when it is registered
    milliseconds delay{0};
    sys::Loop::Timer timer;
    int doubts = 0;
    milliseconds doubt_pause{1'000};
    Clock::time_point no_doubt_before;
  };

  sys::Loop& loop;
  RegistrarOptions options;
  PodResources* kubelet_view;
  OnEvent on_event;
  std::vector<std::unique_ptr<Entry>> entries;
  std::unique_ptr<DirectoryWatch> directory;
  std::unique_ptr<grpc::Client> client;
  std::optional<FileId> kubelet;  // its socket
  std::string waiting_for;        // already reported
  std::uint64_t next_number;
  std::int64_t last_time = 0;  // in the name of a socket
  sys::Loop::Timer look_timer;
  milliseconds look_pause{0};
  sys::Loop::Timer check_timer;
  milliseconds check_pause;  // doubled while the kubelet has our list
  bool asked = false;

  State(sys::Loop& its_loop, RegistrarOptions its_options, PodResources* its_beliefs, OnEvent tell)
      : loop(its_loop),
        options(std::move(its_options)),
        kubelet_view(its_beliefs),
        on_event(std::move(tell)),
        // From the clock: in a pod the pid is always the same, and two processes must not use the
        // same name.
        next_number(static_cast<std::uint64_t>(unix_ms()) & 0xFFFFFFFFU),
        check_pause(options.check_every) {}

  void tell(EventKind what, const Entry* entry, std::string text = "") const {
    if (!on_event) return;
    RegistrarEvent event{.what = what, .text = std::move(text)};
    if (entry != nullptr) {
      event.resource = entry->plugin->resource();
      const auto& path = entry->plugin->socket_path();
      event.endpoint = path.substr(path.rfind('/') + 1);
    }
    on_event(event);
  }

  Entry* find(const Plugin* plugin) {
    for (const auto& entry : entries) {
      if (entry->plugin == plugin) return entry.get();
    }
    return nullptr;
  }

  std::string kubelet_path() const {
    return fmt::format("{}/{}", options.directory, kKubeletSocket);
  }

  void wait_for(const std::string& missing) {
    kubelet.reset();
    client.reset();
    for (const auto& entry : entries) {
      entry->phase = Phase::Waiting;
      entry->timer.cancel();
    }
    if (std::exchange(waiting_for, missing) != missing) tell(EventKind::Waiting, nullptr, missing);
  }

  // inotify reports changes at once; without it, the directory is read often.
  void look() {
    compare_directory();
    const auto pause = directory->is_watching() ? options.look_watched_every : options.look_every;
    if (std::exchange(look_pause, pause) != pause) {
      look_timer = loop.every(pause, [this] { look(); });
    }
  }

  void compare_directory() {
    if (!directory->rewatch()) return wait_for(options.directory);
    const auto socket = file_id(kubelet_path());
    if (!socket) return wait_for(kubelet_path());
    if (socket != kubelet) return meet(*socket);
    for (const auto& entry : entries) {
      if (entry->phase != Phase::Registered || file_id(entry->plugin->socket_path())) continue;
      tell(EventKind::SocketRemoved, entry.get());
      entry->new_socket = true;
      entry->delay = kSettling;
      again(*entry);
    }
  }

  void meet(const FileId& socket) {
    kubelet = socket;
    waiting_for.clear();
    client = std::make_unique<grpc::Client>(loop, kubelet_path());
    tell(EventKind::Found, nullptr, kubelet_path());
    for (const auto& entry : entries) start(*entry);
  }

  void start(Entry& entry) {
    entry.delay = options.first_retry;
    entry.new_socket = true;
    entry.doubts = 0;
    attempt(entry);
  }

  std::string next_name(const Entry& entry) {
    if (options.names == SocketNaming::Ours)
      return socket_name(entry.plugin->resource(), next_number++);
    last_time = std::max<std::int64_t>(last_time + 1, std::time(nullptr));
    return gke_socket_name(last_time);
  }

  Status new_socket_for(Entry& entry) {
    for (int tries = 1;; ++tries) {
      const auto name = next_name(entry);
      auto served = entry.plugin->serve(fmt::format("{}/{}", options.directory, name));
      if (served.ok() || served.error().code() != Errc::Exists || tries == kNameTries)
        return served;
    }
  }

  void attempt(Entry& entry) {
    ++entry.attempt;
    entry.timer.cancel();  // this is the retry: a second one would use the socket's name twice
    if (!client) {
      entry.phase = Phase::Waiting;  // meet() continues with it
      return;
    }
    entry.phase = Phase::Registering;
    if (entry.new_socket || !file_id(entry.plugin->socket_path())) {
      if (const auto served = new_socket_for(entry); !served.ok()) {
        tell(EventKind::NotRegistered, &entry, served.error().text());
        return again(entry);
      }
      tell(EventKind::Serving, &entry);
    }
    entry.new_socket = false;
    const auto& path = entry.plugin->socket_path();
    const RegisterRequest request{
        .endpoint = path.substr(path.rfind('/') + 1),
        .resource = entry.plugin->resource(),
        .options = {.pre_start_required = true, .preferred_allocation_available = true}};
    client->call(kRegister, encode(request), options.register_deadline,
                 [weak = weak_from_this(), plugin = entry.plugin, number = entry.attempt](
                     const grpc::CallStatus& outcome, const std::string&) {
                   const auto self = weak.lock();
                   if (self) self->answered(plugin, number, outcome);
                 });
  }

  void answered(const Plugin* plugin, std::uint64_t number, const grpc::CallStatus& outcome) {
    Entry* entry = find(plugin);
    if (entry == nullptr || entry->attempt != number) return;
    if (outcome.ok()) {
      entry->phase = Phase::Registered;
      entry->since = Clock::now();
      tell(EventKind::Registered, entry);
      // The kubelet read the list before its answer arrived.
      if (plugin->watched()) tell(EventKind::Watched, entry);
      check_pause = options.first_check;
      return check_in(check_pause);
    }
    // UNAVAILABLE: no kubelet has this socket. Otherwise a kubelet may have it, and a name is used
    // only once.
    entry->new_socket = outcome.code != grpc::StatusCode::Unavailable;
    tell(EventKind::NotRegistered, entry, grpc::to_error(outcome).text());
    again(*entry);
  }

  void again(Entry& entry) {
    entry.phase = Phase::Registering;
    ++entry.attempt;
    const auto delay = std::max(entry.delay, options.first_retry);
    entry.delay = std::min(delay * 2, options.last_retry);
    entry.timer = loop.after(delay, [this, &entry] { attempt(entry); });
  }

  void watched(const Plugin* plugin, bool is_watched) {
    Entry* entry = find(plugin);
    if (entry == nullptr || entry->phase != Phase::Registered) return;
    if (is_watched) return tell(EventKind::Watched, entry);
    tell(EventKind::Disconnected, entry);
    if (Clock::now() - entry->since > kSettled) entry->delay = options.first_retry;
    entry->new_socket = true;
    again(*entry);
    look();  // a kubelet that exited removed its socket, or a new kubelet has made another
  }

  void check_in(milliseconds delay) {
    if (kubelet_view == nullptr || asked) return;
    check_timer = loop.after(delay, [this] { check(); });
  }

  void check() {
    asked = true;
    kubelet_view->forget();
    kubelet_view->allocatable([weak = weak_from_this()](const Result<Allocatable>& answer) {
      const auto self = weak.lock();
      if (!self) return;
      self->asked = false;
      self->compare(answer);
    });
  }

  void compare(const Result<Allocatable>& answer) {
    bool doubtful = false;
    for (const auto& entry : entries) {
      if (entry->phase != Phase::Registered) continue;
      if (!entry->plugin->watched()) {
        doubtful = true;
        if (Clock::now() - entry->since > kNotWatched)
          disbelieved(*entry, "it did not ask for our list of devices");
        continue;
      }
      // An old kubelet does not answer this, and a busy one may not answer now: that is no problem.
      if (!answer.ok()) continue;
      const auto found = answer->find(entry->plugin->resource());
      const auto theirs = found == answer->end() ? Allocatable::mapped_type{} : found->second;
      const auto ours = healthy_ids(*entry->plugin);
      if (theirs == ours) {
        entry->doubts = 0;
        entry->doubt_pause = milliseconds{1'000};
        continue;
      }
      doubtful = true;
      // At the first doubt the kubelet perhaps has not read the last list yet. Later the cause is
      // that kubelets up to 1.36 close the current connection when an older stream ends, and stop
      // the endpoint of the resource a moment after that. If we have registered in between, that
      // stops the new endpoint: its stream stays open, but every Allocate fails. Sending the list
      // again would only hide it.
      if (++entry->doubts > 1)
        disbelieved(*entry, fmt::format("it has {} devices to allocate, we have {}", theirs.size(),
                                        ours.size()));
    }
    check_pause = doubtful ? options.first_check : std::min(check_pause * 2, options.check_every);
    check_in(check_pause);
  }

  // Each registration costs the kubelet a connection, which it never closes up to 1.36. So the
  // pauses become longer, because another plugin may want the same resource.
  void disbelieved(Entry& entry, std::string why) {
    if (Clock::now() < entry.no_doubt_before) return;
    entry.no_doubt_before = Clock::now() + entry.doubt_pause;
    entry.doubt_pause = std::min(entry.doubt_pause * 2, kLastDoubt);
    tell(EventKind::OutOfSync, &entry, std::move(why));
    entry.doubts = 0;
    entry.new_socket = true;
    attempt(entry);
  }
};

Registrar::Registrar(sys::Loop& loop, RegistrarOptions options, PodResources* kubelet_view,
                     OnEvent on_event)
    : state_(std::make_shared<State>(loop, std::move(options), kubelet_view, std::move(on_event))) {
}

Registrar::~Registrar() {
  for (const auto& entry : state_->entries) entry->plugin->on_watched(nullptr);
}

Status Registrar::start() {
  auto* state = state_.get();
  remove_stale_sockets(state->options.directory);
  state->directory = std::make_unique<DirectoryWatch>(state->loop, state->options.directory,
                                                      [state] { state->look(); });
  state->look();
  state->check_in(state->options.check_every);
  return {};
}

void Registrar::add(Plugin& plugin) {
  auto entry = std::make_unique<State::Entry>();
  entry->plugin = &plugin;
  plugin.on_watched([weak = std::weak_ptr(state_), &plugin](bool watched) {
    if (const auto state = weak.lock()) state->watched(&plugin, watched);
  });
  state_->entries.push_back(std::move(entry));
  state_->start(*state_->entries.back());
}

void Registrar::remove(Plugin& plugin) {
  plugin.on_watched(nullptr);
  std::erase_if(state_->entries, [&](const auto& entry) { return entry->plugin == &plugin; });
}

bool Registrar::registered(const Plugin& plugin) const {
  const auto* entry = state_->find(&plugin);
  return entry != nullptr && entry->phase == State::Phase::Registered && plugin.watched();
}

bool Registrar::all_registered() const {
  return std::all_of(state_->entries.begin(), state_->entries.end(),
                     [this](const auto& entry) { return registered(*entry->plugin); });
}

}  // namespace gantry::kubelet
