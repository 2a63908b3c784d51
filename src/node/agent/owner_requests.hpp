// SPDX-License-Identifier: Apache-2.0
// Joins the agent with owner_lease: commands that change the owner of a GPU ask the agent for it.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/machine_watcher.hpp"
#include "node/agent/ownership_filter.hpp"
#include "node/agent/worker.hpp"
#include "node/owner_lease/lease_server.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace gantry::agent {

class OwnerRequests {
 public:
  using LeaseTarget = owner_lease::LeaseServer::LeaseTarget;
  struct AgentCallbacks {
    // What is wanted is not offered, and the kubelet knows it.
    std::function<bool(const LeaseTarget& wanted)> withdrawn;
    // Asks the kubelet which pods have devices, and calls `then` when it has answered.
    std::function<void(std::function<void(const Status& asked)> then)> ask_kubelet;
    // The pods that have a part of it, as asked last.
    std::function<std::vector<std::string>(const LeaseTarget& wanted)> pods;
    std::function<void()> offer;  // computes the offer again
  };

  OwnerRequests(sys::Loop& loop, const sys::Host& host, const Log& log, OwnershipFilter& ownership,
                MachineWatcher& machine, AgentCallbacks callbacks);
  OwnerRequests(const OwnerRequests&) = delete;
  OwnerRequests& operator=(const OwnerRequests&) = delete;

  Status listen();
  // NVML has described the machine. To be called before the machine is offered.
  void machine_known();

 private:
  owner_lease::LeaseServer::Callbacks server_callbacks();
  void find_usage(const LeaseTarget& wanted, owner_lease::LeaseServer::UsageFound found);
  void find_processes(const LeaseTarget& wanted, owner_lease::LeaseServer::UsageFound found);
  using HoldersFound = std::function<void(Result<std::vector<std::string>> holders)>;
  void look_for_holders(const LeaseTarget& wanted, HoldersFound then);
  void look_at_known_holders(const LeaseTarget& wanted, owner_lease::LeaseServer::UsageFound found);
  void found_processes(const model::PciAddress& gpu, Result<std::vector<std::string>> holders,
                       const owner_lease::LeaseServer::UsageFound& found);
  void let_go_of(const model::PciAddress& gpu);
  bool use_again(const model::PciAddress& gpu);
  void offer_again(const model::PciAddress& gpu);

  sys::Loop& loop_;
  const sys::Host& host_;
  OwnershipFilter& ownership_;
  MachineWatcher& machine_;
  AgentCallbacks callbacks_;
  // GPUs whose lease has ended, until the machine is described again.
  std::set<model::PciAddress> returning_;
  // The processes and shares for which a command waits.
  std::map<model::PciAddress, std::vector<std::string>> holders_;
  std::map<model::PciAddress, sys::Loop::Timer> timers_;
  owner_lease::LeaseServer server_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for answers that come too late
  Worker worker_;  // last: its tasks read /proc and ask the share daemon
};

}  // namespace gantry::agent
