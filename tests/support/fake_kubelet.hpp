// SPDX-License-Identifier: Apache-2.0
// A fake kubelet for device plugins: registration, ListAndWatch, the admission of pods, the
// checkpoint and podresources. It runs no pods. It supports both reactions of kubelets to the end
// of a stream: up to 1.36 it removes the current registration of the resource, from 1.37 only the
// registration of that stream.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "gpu/model/advertised.hpp"
#include "net/grpc/client.hpp"
#include "net/grpc/server.hpp"
#include "node/kubelet/messages.hpp"
#include "node/kubelet/pod_resources.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gantry::test {

class FakeKubelet {
 public:
  enum class Streams : std::uint8_t { ByResource, BySocket };  // up to 1.36, from 1.37

  struct Options {
    std::string directory;      // of kubelet.sock and the checkpoint
    std::string pod_resources;  // a socket's path; "": none
    Streams streams = Streams::ByResource;
    std::chrono::milliseconds call_deadline{10'000};
    std::chrono::milliseconds pre_start_deadline{30'000};
  };

  enum class Kind : std::uint8_t { App, Init, Sidecar };
  struct Container {
    std::string name;
    std::map<std::string, int> limits;  // resource to count
    Kind kind = Kind::App;
    std::optional<std::set<int>> numa_nodes;  // the topology manager's hint
  };
  struct Pod {
    std::string pod_namespace = "default";
    std::string name;
    std::string uid;
    std::vector<Container> containers;  // init containers first
  };

  FakeKubelet(sys::Loop& loop, Options options);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  // Removes every socket of the directory, keeps the checkpoint and reads it, listens.
  Status start();
  // Like a kill: connections break, the socket files stay.
  void kill();
  bool running() const { return server_ != nullptr; }

  // These run the loop while they wait, so plugins in the same loop can answer. As in a kubelet, an
  // error rejects the pod permanently.
  Status admit(const Pod& pod);
  // Called before each start of a container: calls PreStartContainer and returns the merged stored
  // answers.
  Result<model::ContainerAllocateResponse> start_container(const std::string& uid,
                                                           const std::string& container);
  // Measures how long a plugin takes to answer over its socket: the same call many times. The
  // answers are not stored.
  struct CallTimes {
    std::vector<std::chrono::nanoseconds> prefer;
    std::vector<std::chrono::nanoseconds> allocate;
  };
  Result<CallTimes> time_calls(const std::string& resource, int devices, std::uint64_t calls);
  // The pod has ended; its devices come back at the next admission.
  void remove(const std::string& uid);

  std::size_t capacity(const std::string& resource) const;
  std::set<std::string> healthy(const std::string& resource) const;  // allocatable
  bool connected(const std::string& resource) const;
  std::vector<std::string> ids_of(const std::string& uid, const std::string& container,
                                  const std::string& resource) const;
  std::vector<model::DeviceAllocation> holders() const;  // active pods' apps and sidecars
  kubelet::Allocatable allocatable() const;
  const std::vector<kubelet::RegisterRequest>& registrations() const { return registrations_; }
  const std::vector<std::string>& calls() const { return calls_; }  // "Allocate nvidia.com/gpu"

  // Faults.
  void drop_connections();  // of all plugins, like a broken kubelet
  void answer_register_with(std::optional<grpc::CallStatus> outcome) {
    register_outcome_ = std::move(outcome);
  }
  void die_in_register() { dies_in_register_ = true; }
  void answer_pod_resources_with(std::optional<grpc::CallStatus> outcome) {
    pod_resources_outcome_ = std::move(outcome);
  }
  int pod_resources_calls() const { return pod_resources_calls_; }
  // What a kubelet up to 1.36 does if an older stream of the resource ends while it is busy: all
  // devices are unhealthy and the endpoint refuses calls, although its stream stays open.
  void stop_endpoint(const std::string& resource);

 private:
  struct Endpoint {
    std::string resource;
    std::string socket;
    std::unique_ptr<grpc::Client> client;
    grpc::Client::Stream stream;
    kubelet::PluginOptions options;
    bool connected = false;
    bool stopped = false;
  };
  struct Devices {
    std::map<std::string, kubelet::ListedDevice> all;
    std::set<std::string> healthy;
  };
  struct AllocatedDevices {
    std::map<int, std::set<std::string>> ids;  // by NUMA node, -1: none
    std::string answer;                        // ContainerAllocateResponse
    std::set<std::string> all() const;
  };
  using Ids = std::set<std::string>;
  using Resources = std::map<std::string, AllocatedDevices>;

  void on_register(const std::string& request, const grpc::Responder& reply);
  void on_options(const std::shared_ptr<Endpoint>& endpoint, const grpc::CallStatus& outcome,
                  const std::string& answer, const grpc::Responder& reply);
  void watch(const std::shared_ptr<Endpoint>& endpoint);
  void on_list(const std::string& resource, const std::string& message);
  void on_stream_end(const std::shared_ptr<Endpoint>& endpoint);
  void disconnect(std::shared_ptr<Endpoint> endpoint);  // by value: it is taken off our lists
  void mark_unhealthy(const std::string& resource);
  std::shared_ptr<Endpoint> endpoint_of(const std::string& resource) const;

  Status allocate_container(const Pod& pod, const Container& container);
  Result<Ids> choose(const Pod& pod, const Container& container, const std::string& resource,
                     int count);
  Result<Ids> preferred(const std::string& resource, const Ids& available, const Ids& must,
                        int size);
  Result<std::string> ask(const std::string& resource, std::string_view method, std::string request,
                          std::chrono::milliseconds deadline);
  void collect_garbage();
  Ids in_use(const std::string& resource) const;
  AllocatedDevices given(const std::string& resource, const Ids& ids, std::string answer) const;

  void serve_pod_resources();
  void write_checkpoint() const;
  Status read_checkpoint();

  sys::Loop& loop_;
  Options options_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> pod_resources_;
  std::vector<std::shared_ptr<Endpoint>> endpoints_;  // every connected one, the newest last
  std::map<std::string, std::shared_ptr<Endpoint>> current_;  // by resource
  std::map<std::string, Devices> devices_;
  std::map<std::string, std::map<std::string, Resources>> pods_;  // uid, container
  std::map<std::string, Pod> active_;
  std::map<std::string, Ids> reusable_;  // of the pod that is being admitted, by resource
  std::vector<kubelet::RegisterRequest> registrations_;
  std::vector<std::string> calls_;
  std::optional<grpc::CallStatus> register_outcome_;
  std::optional<grpc::CallStatus> pod_resources_outcome_;
  int pod_resources_calls_ = 0;
  bool dies_in_register_ = false;
  std::shared_ptr<int> life_;  // of this start: answers to an earlier start find it expired
};

}  // namespace gantry::test
