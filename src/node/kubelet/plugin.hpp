// SPDX-License-Identifier: Apache-2.0
// One resource's device plugin: the kubelet's calls become questions to the agent, and the agent's
// devices the kubelet's list. Where and with whom it is registered is Registrar's matter.
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

// A container is about to be created with these devices; its pod is in the checkpoint by now. The
// kubelet waits 30 s and tries again after an error. Copies are the same question; dropping the
// last one without an answer is an error to the kubelet.
class PreStartRequest {
 public:
  PreStartRequest(DeviceIds ids, std::function<void(const Status&)> answer,
                  std::function<bool()> over)
      : ids_(std::move(ids)), answer_(std::move(answer)), over_(std::move(over)) {}

  const DeviceIds& ids() const { return ids_; }
  void ready() const { answer_({}); }
  void fail(const Error& error) const { answer_(error); }
  bool over() const { return over_(); }  // nobody waits any more

 private:
  DeviceIds ids_;
  std::function<void(const Status&)> answer_;
  std::function<bool()> over_;
};

// How one call went, for counters and logs.
struct CallReport {
  std::string_view resource;
  std::string_view method;  // "Allocate"
  grpc::CallStatus outcome;
  std::chrono::nanoseconds took{0};
};

// The agent's side. Called in the loop; must neither block nor end the plugin.
struct PluginCallbacks {
  // Of one container. An error fails the pod for good (UnexpectedAdmissionError): never for what
  // could be well a second later. Every id is one of the list.
  std::function<Result<model::ContainerAllocateResponse>(const DeviceIds& ids)> allocate;
  // An error is not passed on, because it would fail the pod: the kubelet then chooses by itself.
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

  // The whole list, also the first one; sent to every kubelet that listens, when it differs from
  // the last. An empty list is legal and means none.
  void offer(std::vector<ListedDevice> devices);
  const std::vector<ListedDevice>& devices() const;
  // The same list once more, for a kubelet that believes another one.
  void send_again();

  // A new socket. Earlier ones stay served while somebody is connected: on kubelets up to 1.36 the
  // end of an old stream would disconnect the new registration.
  Status serve(const std::string& socket_path);
  const std::string& socket_path() const;  // the newest, "" before the first
  void stop_serving();                     // everything, at once

  bool watched() const;  // a kubelet reads the list through the newest socket
  // Called when that begins (true) or ends (false). For the registrar; others hear it from there.
  void on_watched(std::function<void(bool watched)> callback);

  std::vector<int> connections() const;  // of all sockets, for a handover; still owned here
  bool quiet() const;                    // no call waits for its answer, nothing is half sent

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// How the kubelet hears of an offered device. Healthy unless the agent knows otherwise.
ListedDevice listed(const model::AdvertisedDevice& device, bool healthy);

}  // namespace gantry::kubelet
