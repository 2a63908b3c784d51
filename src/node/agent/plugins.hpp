// SPDX-License-Identifier: Apache-2.0
// The kubelet's side of the agent: runs one device plugin for each resource and keeps it
// registered.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/current_offer.hpp"
#include "node/agent/gke_log.hpp"
#include "node/kubelet/plugin.hpp"
#include "node/kubelet/pod_resources.hpp"
#include "node/kubelet/registrar.hpp"
#include "node/metrics/snapshot.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gantry::agent {

class Plugins {
 public:
  // Called before a container is created, with the resource and the devices. The handler answers
  // through the request.
  using OnPreStart =
      std::function<void(const std::string& resource, kubelet::PreStartRequest question)>;

  Plugins(sys::Loop& loop, kubelet::RegistrarOptions options, kubelet::PodResources* kubelet_view,
          const Log& log, metrics::AgentCounters& counters, OnPreStart on_pre_start);
  // Used in addition to the log; must outlive this object.
  void set_gke_log(const GkeLog* log) { gke_log_ = log; }
  // Called whenever the kubelet begins to read the list of a resource that it has registered.
  void on_watched(std::function<void()> tell) { on_watched_ = std::move(tell); }
  Status start();

  // Sets what the node offers from now on. A resource that is no longer offered is sent as an empty
  // list, because otherwise the kubelet would count its devices as capacity for minutes.
  void offer(std::shared_ptr<const CurrentOffer> offering,
             const std::vector<model::DeviceHealth>& health);
  void set_health(const std::vector<model::DeviceHealth>& health);

  bool all_registered() const { return registrar_.all_registered(); }
  std::vector<kubelet::Plugin*> plugins() const;

 private:
  void list(kubelet::Plugin& plugin, std::vector<kubelet::ListedDevice> devices) const;
  kubelet::Plugin& plugin_of(const std::string& resource);
  kubelet::PluginCallbacks decisions_for(const std::string& resource);
  Result<model::ContainerAllocateResponse> allocate(const std::string& resource,
                                                    const kubelet::DeviceIds& ids);
  Result<kubelet::DeviceIds> prefer(const std::string& resource,
                                    const kubelet::PreferredRequest& request);
  void count(const kubelet::CallReport& report);
  void on_registrar(const kubelet::RegistrarEvent& event);

  sys::Loop& loop_;
  const Log& log_;
  metrics::AgentCounters& counters_;
  OnPreStart on_pre_start_;
  const GkeLog* gke_log_ = nullptr;
  std::function<void()> on_watched_;
  std::shared_ptr<const CurrentOffer> offering_;
  std::map<std::string, std::unique_ptr<kubelet::Plugin>> plugins_;  // must outlive the registrar
  kubelet::Registrar registrar_;
};

}  // namespace gantry::agent
