// SPDX-License-Identifier: Apache-2.0
// Writes the log lines of GKE's device plugin, word for word and in the same order, because
// runbooks search for these lines. Used when the agent is called by that plugin's name; the agent
// then writes its own lines only with -v=1.
#pragma once

#include "base/log/log.hpp"
#include "gpu/health/health.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/model/inventory.hpp"
#include "node/kubelet/messages.hpp"
#include "node/kubelet/registrar.hpp"
#include "node/options/options.hpp"

#include <string>
#include <vector>

namespace gantry::agent {

class GkeLog {
 public:
  // `directory` is the kubelet's directory as written in the flag.
  GkeLog(Log log, std::string directory) : log_(std::move(log)), directory_(std::move(directory)) {}

  void started() const;
  void options(const std::vector<std::string>& notes) const;  // the notes of options::read_options
  void metrics(const options::GkeOptions& gke, const model::Inventory& machine) const;
  void health_checks(const std::vector<model::AdvertisedResource>& offered) const;
  void serving() const;
  void registrar(const kubelet::RegistrarEvent& event,
                 const std::vector<kubelet::ListedDevice>& devices) const;
  // The list of devices changed, and a kubelet reads it.
  void devices(const std::vector<kubelet::ListedDevice>& before,
               const std::vector<kubelet::ListedDevice>& now) const;
  // An XID occurred. `device` is the kubelet's name for the GPU, or "" if the driver did not say
  // which GPU.
  void xid(const health::HealthNotice& notice, const std::string& device) const;

 private:
  void send(const std::vector<kubelet::ListedDevice>& devices) const;
  Log log_;
  std::string directory_;
};

// The message to the kubelet in the form in which Go prints it.
std::string go_text(const std::vector<kubelet::ListedDevice>& devices);

}  // namespace gantry::agent
