// SPDX-License-Identifier: Apache-2.0
// One agent follows another without a gap: the new one registers, takes over the kubelet's
// connections from the old one, and waits in its place for its own successor.
#pragma once

#include "base/sys/loop.hpp"
#include "node/agent/log.hpp"
#include "node/kubelet/handover.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gantry::agent {

class AgentHandover {
 public:
  struct HandoverCallbacks {
    std::function<bool()> registered;  // every resource of ours is the kubelet's
    std::function<std::vector<kubelet::LentConnection>()> connections;  // the kubelet's
    std::function<bool(const std::string& resource)> offers;            // we have registered it
    std::function<bool()> quiet;
    std::function<void()> given;  // a new one has everything: end without another word
  };

  AgentHandover(sys::Loop& loop, std::string socket, const Log& log, HandoverCallbacks side);

 private:
  void look();
  void taken(Result<std::vector<kubelet::TakenConnection>> connections);

  sys::Loop& loop_;
  std::string socket_;
  const Log& log_;
  HandoverCallbacks handover_callbacks_;
  sys::Loop::Timer timer_;
  kubelet::IdleConnections kept_;
  std::optional<kubelet::Takeover> takeover_;
  std::optional<kubelet::HandoverServer> server_;
};

}  // namespace gantry::agent
