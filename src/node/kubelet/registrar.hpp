// SPDX-License-Identifier: Apache-2.0
// Keeps plugins registered with the kubelet: waits for a kubelet, notices when it restarts, when
// its directory is replaced and when our sockets are removed, and regularly checks that the kubelet
// still has our devices.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "node/kubelet/plugin.hpp"
#include "node/kubelet/pod_resources.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace gantry::kubelet {

// The names of our sockets: gantry-RESOURCE-PID-NUMBER.sock, or nvidiaGPU-UNIXTIME.sock as in GKE's
// plugin.
enum class SocketNaming : std::uint8_t { Ours, Gke };

struct RegistrarOptions {
  std::string directory = "/var/lib/kubelet/device-plugins";
  SocketNaming names = SocketNaming::Ours;
  std::chrono::milliseconds register_deadline{10'000};
  std::chrono::milliseconds first_retry{20};  // doubled each time, up to:
  std::chrono::milliseconds last_retry{5'000};
  std::chrono::milliseconds look_every{1'000};  // for the directory, if inotify does not watch it
  std::chrono::milliseconds look_watched_every{
      10'000};  // if it does: it does not report everything
  // Of the kubelet's list: the first one after a registration; the pause doubles up to the second.
  std::chrono::milliseconds first_check{250};
  std::chrono::milliseconds check_every{30'000};
};

struct RegistrarEvent {
  enum class Kind : std::uint8_t {
    Waiting,        // no kubelet; text says what is missing
    Found,          // a kubelet's socket: the first one, or a new one
    Serving,        // resource, endpoint: a new socket, before it is registered
    Registered,     // resource, endpoint
    Watched,        // resource: registered, and the kubelet reads our list
    NotRegistered,  // resource, text: why; the registrar tries again
    Disconnected,   // resource: the kubelet closed its stream; we register again
    OutOfSync,      // resource, text: the kubelet has a different list
    SocketRemoved   // resource: our socket was removed
  };
  Kind what = Kind::Waiting;
  std::string resource;
  std::string endpoint;
  std::string text;
};

class Registrar {
 public:
  using OnEvent = std::function<void(const RegistrarEvent& event)>;

  // `kubelet_view` returns the kubelet's list of devices; nullptr: do not check it. `on_event` is
  // for logs and counters and must not add or remove plugins.
  Registrar(sys::Loop& loop, RegistrarOptions options, PodResources* kubelet_view,
            OnEvent on_event);
  ~Registrar();  // the plugins stay unchanged
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;

  // Removes sockets that dead processes of ours left, and starts to watch the directory.
  Status start();
  // Registers the plugin as soon as there is a kubelet. The plugin must outlive the registrar, or
  // be removed.
  void add(Plugin& plugin);
  void remove(Plugin& plugin);

  bool registered(const Plugin& plugin) const;  // and the kubelet reads its list
  bool all_registered() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gantry::kubelet
