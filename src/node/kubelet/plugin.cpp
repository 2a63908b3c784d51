// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/plugin.hpp"

#include "base/core/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gantry::kubelet {
namespace {

using grpc::CallStatus;
using grpc::Responder;
using grpc::StatusCode;

// Streams at once; a kubelet has one, or two while it restarts.
constexpr std::size_t kListeners = 32;
constexpr std::size_t kContainersPerCall = 64;  // a kubelet asks for one
constexpr std::size_t kDevicesShown = 8;        // unknown ids in a message

std::string_view short_name(std::string_view method) {
  return method.substr(method.rfind('/') + 1);
}

CallStatus unknown_devices(const std::string& resource, const DeviceIds& unknown) {
  const DeviceIds shown(unknown.begin(), unknown.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                               unknown.size(), kDevicesShown)));
  return {StatusCode::NotFound,
          fmt::format("invalid allocation request for '{}': unknown device: {}", resource,
                      fmt::join(shown, ", "))};
}

Status valid(const PreferredRequest& request) {
  const std::set<std::string_view> available(request.available.begin(), request.available.end());
  const auto missing = [&](const std::string& id) { return available.count(id) == 0; };
  const auto size = static_cast<std::size_t>(request.size);
  if (size > available.size() || request.must_include.size() > size ||
      std::any_of(request.must_include.begin(), request.must_include.end(), missing)) {
    return Error(
        Errc::Invalid,
        fmt::format("cannot choose {} devices: {} are available, and {} must be among them", size,
                    available.size(), request.must_include.size()));
  }
  return {};
}

}  // namespace

struct Plugin::State : public std::enable_shared_from_this<State> {
  struct Socket {
    std::string path;
    std::unique_ptr<grpc::Server> server;
  };
  struct Listener {
    std::uint64_t socket = 0;  // its number, see `sockets_made`
    Responder reply;
  };

  sys::Loop& loop;
  std::string resource;
  PluginCallbacks decisions;
  std::vector<ListedDevice> devices;
  std::set<std::string, std::less<>> ids;
  std::vector<Socket> sockets;  // the newest last
  std::uint64_t sockets_made = 0;
  std::vector<Listener> listeners;
  bool was_watched = false;
  std::function<void(bool)> on_watched;
  std::string no_path;
  sys::Loop::Timer later;

  State(sys::Loop& its_loop, std::string its_resource, PluginCallbacks its_decisions)
      : loop(its_loop), resource(std::move(its_resource)), decisions(std::move(its_decisions)) {}

  void report(std::string_view method, const CallStatus& outcome, Clock::time_point since) const {
    if (decisions.report) {
      decisions.report({resource, short_name(method), outcome, Clock::now() - since});
    }
  }

  // Answers now, and reports the call.
  void settle(std::string_view method, const Responder& reply, const Result<std::string>& answer,
              Clock::time_point since) const {
    const CallStatus outcome = answer.ok() ? CallStatus{} : grpc::to_call_status(answer.error());
    if (answer.ok()) {
      reply.answer(*answer);
    } else {
      reply.fail(outcome);
    }
    report(method, outcome, since);
  }

  bool watched() const {
    return std::any_of(listeners.begin(), listeners.end(), [this](const Listener& one) {
      return one.socket == sockets_made && !one.reply.over();
    });
  }

  void look_who_listens() {
    std::erase_if(listeners, [](const Listener& one) { return one.reply.over(); });
    const bool now = watched();
    if (std::exchange(was_watched, now) != now && on_watched) on_watched(now);
  }

  // Closes old sockets when no client is connected. Not at once, because a server may be on the
  // call stack.
  void tidy_soon() {
    later = loop.after({}, [this] {
      look_who_listens();
      const auto old = [this](const Socket& one) {
        return &one != &sockets.back() && one.server->connection_count() == 0;
      };
      std::vector<Socket> kept;
      for (auto& one : sockets) {
        if (!old(one)) kept.push_back(std::move(one));
      }
      sockets = std::move(kept);
    });
  }

  void listen_to(std::uint64_t socket, const Responder& reply) {
    const auto since = Clock::now();
    std::erase_if(listeners, [](const Listener& one) { return one.reply.over(); });
    if (listeners.size() >= kListeners) {
      const CallStatus full{StatusCode::ResourceExhausted,
                            fmt::format("{} streams are already open", listeners.size())};
      reply.fail(full);
      return report(kListAndWatch, full, since);
    }
    reply.on_cancelled([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->tidy_soon();
    });
    reply.send(encode_list(devices));
    listeners.push_back({socket, reply});
    report(kListAndWatch, {}, since);
    look_who_listens();
  }

  void send_list() {
    const std::string list = encode_list(devices);
    for (const auto& one : listeners) one.reply.send_latest(list);
  }

  Result<model::ContainerAllocateResponse> allocate_one(const DeviceIds& wanted) const {
    if (wanted.empty()) return Error(Errc::Invalid, "a container does not ask for any device");
    return decisions.allocate(wanted);
  }

  void allocate(const std::string& request, const Responder& reply) const {
    const auto since = Clock::now();
    const auto containers = decode_allocate_request(request);
    if (!containers.ok()) return settle(kAllocate, reply, containers.error(), since);
    if (containers->empty() || containers->size() > kContainersPerCall) {
      const Error odd(Errc::Invalid,
                      fmt::format("{} containers in one request", containers->size()));
      return settle(kAllocate, reply, odd, since);
    }
    std::vector<model::ContainerAllocateResponse> answers;
    for (const auto& wanted : *containers) {
      DeviceIds unknown;
      for (const auto& id : wanted) {
        if (ids.count(id) == 0) unknown.push_back(id);
      }
      if (!unknown.empty()) {
        const auto outcome = unknown_devices(resource, unknown);
        reply.fail(outcome);
        return report(kAllocate, outcome, since);
      }
      auto answer = allocate_one(wanted);
      if (!answer.ok()) return settle(kAllocate, reply, answer.error(), since);
      answers.push_back(*std::move(answer));
    }
    settle(kAllocate, reply, encode_allocate_answer(answers), since);
  }

  void prefer(const std::string& request, const Responder& reply) const {
    const auto since = Clock::now();
    const auto containers = decode_preferred_request(request);
    if (!containers.ok()) return settle(kGetPreferredAllocation, reply, containers.error(), since);
    if (containers->size() > kContainersPerCall) {
      return settle(kGetPreferredAllocation, reply,
                    Error(Errc::Invalid, "too many containers in one request"), since);
    }
    std::vector<DeviceIds> answers;
    for (const auto& container : *containers) {
      if (const auto status = valid(container); !status.ok()) {
        return settle(kGetPreferredAllocation, reply, status.error(), since);
      }
      // An error would fail the pod, so return a short answer instead: the kubelet completes it.
      auto chosen = decisions.prefer ? decisions.prefer(container) : Result<DeviceIds>(DeviceIds{});
      answers.push_back(chosen.ok() ? *std::move(chosen) : container.must_include);
    }
    settle(kGetPreferredAllocation, reply, encode_preferred_answer(answers), since);
  }

  void pre_start(const std::string& request, const Responder& reply) const {
    const auto since = Clock::now();
    auto wanted = decode_pre_start(request);
    if (!wanted.ok()) return settle(kPreStartContainer, reply, wanted.error(), since);
    if (wanted->empty()) {
      return settle(kPreStartContainer, reply, Error(Errc::Invalid, "no devices in the request"),
                    since);
    }
    if (!decisions.pre_start) return settle(kPreStartContainer, reply, std::string(), since);
    auto answer = [weak = weak_from_this(), reply, since](const Status& status) {
      if (reply.over()) return;
      const auto self = weak.lock();
      if (!self) return;
      self->settle(kPreStartContainer, reply,
                   status.ok() ? Result<std::string>(std::string()) : status.error(), since);
    };
    decisions.pre_start(
        PreStartRequest(*std::move(wanted), std::move(answer), [reply] { return reply.over(); }));
  }

  void serve(grpc::Server& server, std::uint64_t socket) {
    // The server belongs to this object, so it does not call after our end.
    server.on(std::string(kOptions), [this](const std::string&, const Responder& reply) {
      const PluginOptions options{.pre_start_required = true,
                                  .preferred_allocation_available = true};
      settle(kOptions, reply, encode(options), Clock::now());
    });
    server.on(
        std::string(kListAndWatch),
        [this, socket](const std::string&, const Responder& reply) { listen_to(socket, reply); });
    server.on(std::string(kAllocate), [this](const std::string& request, const Responder& reply) {
      allocate(request, reply);
    });
    server.on(
        std::string(kGetPreferredAllocation),
        [this](const std::string& request, const Responder& reply) { prefer(request, reply); });
    server.on(
        std::string(kPreStartContainer),
        [this](const std::string& request, const Responder& reply) { pre_start(request, reply); });
  }
};

Plugin::Plugin(sys::Loop& loop, std::string resource, PluginCallbacks decisions)
    : state_(std::make_shared<State>(loop, std::move(resource), std::move(decisions))) {}

Plugin::~Plugin() {
  stop_serving();
}

const std::string& Plugin::resource() const {
  return state_->resource;
}

void Plugin::offer(std::vector<ListedDevice> devices) {
  if (devices == state_->devices) return;
  state_->devices = std::move(devices);
  state_->ids.clear();
  for (const auto& device : state_->devices) state_->ids.insert(device.id);
  state_->send_list();
}

const std::vector<ListedDevice>& Plugin::devices() const {
  return state_->devices;
}

Status Plugin::serve(const std::string& socket_path) {
  auto server = std::make_unique<grpc::Server>(state_->loop);
  state_->serve(*server, state_->sockets_made + 1);
  GANTRY_CHECK(server->listen(socket_path));
  ++state_->sockets_made;
  // Removes the old socket's file, so that no new client connects there.
  if (!state_->sockets.empty()) state_->sockets.back().server->stop_listening();
  state_->sockets.push_back({socket_path, std::move(server)});
  state_->tidy_soon();
  return {};
}

const std::string& Plugin::socket_path() const {
  return state_->sockets.empty() ? state_->no_path : state_->sockets.back().path;
}

void Plugin::stop_serving() {
  state_->listeners.clear();
  state_->sockets.clear();
  state_->later.cancel();
  state_->was_watched = false;
}

bool Plugin::watched() const {
  return state_->watched();
}

void Plugin::on_watched(std::function<void(bool watched)> callback) {
  state_->on_watched = std::move(callback);
}

std::vector<int> Plugin::connections() const {
  std::vector<int> all;
  for (const auto& socket : state_->sockets) {
    const auto some = socket.server->connections();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool Plugin::quiet() const {
  return std::all_of(state_->sockets.begin(), state_->sockets.end(),
                     [](const State::Socket& socket) { return socket.server->quiet(); });
}

ListedDevice listed(const model::AdvertisedDevice& device, bool healthy) {
  return {.id = device.id, .healthy = healthy, .numa_node = device.numa_node};
}

}  // namespace gantry::kubelet
