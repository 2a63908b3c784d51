// SPDX-License-Identifier: Apache-2.0
// What GKE's device plugin says in its log, word for word and in its order: people's runbooks
// compare and search these lines. Spoken by the agent when it is called by that plugin's name; its
// own lines stand beside them with -v=1.
#pragma once

#include "gpu/health/health.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/model/inventory.hpp"
#include "node/agent/log.hpp"
#include "node/kubelet/messages.hpp"
#include "node/kubelet/registrar.hpp"
#include "node/options/options.hpp"

#include <string>
#include <vector>

namespace gantry::agent {

class GkeLog {
 public:
  // `directory` is the kubelet's, as the flag names it.
  GkeLog(Log log, std::string directory) : log_(std::move(log)), directory_(std::move(directory)) {}

  void started() const;
  void options(const std::vector<std::string>& notes) const;  // those of options::read_options
  void metrics(const options::GkeOptions& gke, const model::Inventory& machine) const;
  void health_checks(const std::vector<model::AdvertisedResource>& offered) const;
  void serving() const;
  void registrar(const kubelet::RegistrarEvent& event,
                 const std::vector<kubelet::ListedDevice>& devices) const;
  // Another list than before, for a kubelet that reads it.
  void devices(const std::vector<kubelet::ListedDevice>& before,
               const std::vector<kubelet::ListedDevice>& now) const;
  // An XID. `device` is the kubelet's name for the GPU; "" when the driver did not say which.
  void xid(const health::HealthNotice& notice, const std::string& device) const;

 private:
  void send(const std::vector<kubelet::ListedDevice>& devices) const;
  Log log_;
  std::string directory_;
};

// As Go prints the message that the kubelet is sent.
std::string go_text(const std::vector<kubelet::ListedDevice>& devices);

}  // namespace gantry::agent
