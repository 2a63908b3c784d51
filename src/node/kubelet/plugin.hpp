// SPDX-License-Identifier: Apache-2.0
// The device plugin of one resource: passes the kubelet's calls to the agent, and the agent's
// devices to the kubelet. The Registrar registers it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "gpu/model/advertised.hpp"
#include "net/grpc/call_status.hpp"
#include "net/grpc/server.hpp"
#include "node/kubelet/messages.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kubelet {

// The kubelet is about to create a container with these devices; its pod is already in the
// checkpoint. The kubelet waits 30 s, and tries again after an error. Copies are the same request.
// Dropping the last copy without an answer is an error to the kubelet.
class PreStartRequest {
 public:
  PreStartRequest(DeviceIds ids, std::function<void(const Status&)> answer,
                  std::function<bool()> over)
      : ids_(std::move(ids)), answer_(std::move(answer)), over_(std::move(over)) {}

  const DeviceIds& ids() const { return ids_; }
  void ready() const { answer_({}); }
  void fail(const Error& error) const { answer_(error); }
  bool over() const { return over_(); }  // the kubelet no longer waits

 private:
  DeviceIds ids_;
  std::function<void(const Status&)> answer_;
  std::function<bool()> over_;
};

// The result of one call, for counters and logs.
struct CallReport {
  std::string_view resource;
  std::string_view method;  // "Allocate"
  grpc::CallStatus outcome;
  std::chrono::nanoseconds took{0};
};

// The agent's side. Called in the loop; must neither block nor destroy the plugin.
struct PluginCallbacks {
  // For one container. An error fails the pod permanently (UnexpectedAdmissionError), so never
  // return one for a temporary problem. Every id is in the list of devices.
  std::function<Result<model::ContainerAllocateResponse>(const DeviceIds& ids)> allocate;
  // An error is not passed on, because it would fail the pod; the kubelet then chooses itself.
  std::function<Result<DeviceIds>(const PreferredRequest& request)> prefer;
  std::function<void(PreStartRequest question)> pre_start;
  std::function<void(const CallReport& report)> report;  // may be empty
};

class Plugin {
 public:
  Plugin(sys::Loop& loop, std::string resource, PluginCallbacks decisions);
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& resource() const;

  // Sets the whole list, also for the first time. It is sent to every kubelet that listens if it
  // differs from the last one. An empty list is valid and means that there are no devices.
  void offer(std::vector<ListedDevice> devices);
  const std::vector<ListedDevice>& devices() const;

  // Opens a new socket. Earlier sockets are served while a client is connected: on kubelets up to
  // 1.36, the end of an old stream would disconnect the new registration.
  Status serve(const std::string& socket_path);
  const std::string& socket_path() const;  // the newest; "" before the first
  void stop_serving();                     // closes all sockets at once

  bool watched() const;  // a kubelet reads the list through the newest socket
  // Called when that begins (true) or ends (false). Only for the registrar, which informs the
  // others.
  void on_watched(std::function<void(bool watched)> callback);

  std::vector<int> connections() const;  // of all sockets, for a handover; still owned here
  bool quiet() const;  // no call waits for its answer, and no message is half sent

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The entry for an offered device in the kubelet's list.
ListedDevice listed(const model::AdvertisedDevice& device, bool healthy);

}  // namespace gantry::kubelet
