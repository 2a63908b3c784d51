// SPDX-License-Identifier: Apache-2.0
// Keeps plugins registered with whichever kubelet is there: waits for one, sees it restart, sees
// its directory replaced and our sockets removed, and asks it now and then whether it still
// believes us.
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

// Kind our sockets are called: gantry-RESOURCE-PID-NUMBER.sock, or nvidiaGPU-UNIXTIME.sock as GKE's
// plugin has it.
enum class SocketNaming : std::uint8_t { Ours, Gke };

struct RegistrarOptions {
  std::string directory = "/var/lib/kubelet/device-plugins";
  SocketNaming names = SocketNaming::Ours;
  std::chrono::milliseconds register_deadline{10'000};
  std::chrono::milliseconds first_retry{20};  // doubled each time, up to:
  std::chrono::milliseconds last_retry{5'000};
  std::chrono::milliseconds look_every{1'000};    // at the directory, where inotify said nothing
  std::chrono::milliseconds first_check{250};     // of what the kubelet believes, after a change
  std::chrono::milliseconds check_every{30'000};  // and in quiet times
};

struct RegistrarEvent {
  enum class Kind : std::uint8_t {
    Waiting,        // no kubelet: text says what is missing
    Found,          // a kubelet's socket, a new one or for the first time
    Serving,        // resource, endpoint: a new socket, before the kubelet is told
    Registered,     // resource, endpoint
    Watched,        // resource: registered, and the kubelet reads our list
    NotRegistered,  // resource, text: why; it is tried again
    Disconnected,   // resource: the kubelet let go of us; we register again
    OutOfSync,      // resource, text: the kubelet's list is another one
    SocketRemoved   // resource: somebody removed our socket
  };
  Kind what = Kind::Waiting;
  std::string resource;
  std::string endpoint;
  std::string text;
};

std::string_view to_string(RegistrarEvent::Kind what);

class Registrar {
 public:
  using OnEvent = std::function<void(const RegistrarEvent& event)>;

  // `beliefs` answers what the kubelet believes; nullptr: it is not asked. `on_event` is for logs
  // and counters: it must not add or remove plugins.
  Registrar(sys::Loop& loop, RegistrarOptions options, PodResources* kubelet_view,
            OnEvent on_event);
  ~Registrar();  // plugins stay as they are
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;

  // Removes sockets that dead processes of ours left, and begins to look.
  Status start();
  // Registers it as soon as there is a kubelet. It must outlive the registrar, or be removed.
  void add(Plugin& plugin);
  void remove(Plugin& plugin);

  bool registered(const Plugin& plugin) const;  // and the kubelet reads its list
  bool all_registered() const;
  // Registers once more, through a new socket, although nothing seems wrong.
  void register_again();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gantry::kubelet
