// SPDX-License-Identifier: Apache-2.0
// The kubelet's side of the agent: one device plugin for each resource, registered and kept so.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/gke_voice.hpp"
#include "node/agent/log.hpp"
#include "node/agent/offering.hpp"
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
  // Before a container is created: which resource, which devices. Answered by the question itself.
  using OnPreStart = std::function<void(const std::string& resource, kubelet::PreStart question)>;

  Plugins(sys::Loop& loop, kubelet::RegistrarOptions options, kubelet::PodResources* beliefs,
          const Log& log, metrics::Counters& counters, OnPreStart on_pre_start);
  void speak_as(const GkeVoice* voice) { voice_ = voice; }  // beside the log; must outlive this
  Status start();

  // What the node offers from now on. A resource that is no longer there is shown as an empty list:
  // the kubelet would otherwise keep its devices for minutes and count them as capacity.
  void offer(std::shared_ptr<const Offering> offering,
             const std::vector<model::DeviceHealth>& health);
  void set_health(const std::vector<model::DeviceHealth>& health);

  bool all_registered() const { return registrar_.all_registered(); }
  std::vector<kubelet::Plugin*> plugins() const;

 private:
  void list(kubelet::Plugin& plugin, std::vector<kubelet::ListedDevice> devices) const;
  kubelet::Plugin& plugin_of(const std::string& resource);
  kubelet::Decisions decisions_for(const std::string& resource);
  Result<model::AllocateAnswer> allocate(const std::string& resource, const kubelet::Ids& ids);
  Result<kubelet::Ids> prefer(const std::string& resource,
                              const kubelet::PreferredRequest& request);
  void count(const kubelet::CallReport& report);
  void on_registrar(const kubelet::RegistrarEvent& event);

  sys::Loop& loop_;
  const Log& log_;
  metrics::Counters& counters_;
  OnPreStart on_pre_start_;
  const GkeVoice* voice_ = nullptr;
  std::shared_ptr<const Offering> offering_;
  std::map<std::string, std::unique_ptr<kubelet::Plugin>> plugins_;  // outlive the registrar
  kubelet::Registrar registrar_;
};

}  // namespace gantry::agent
