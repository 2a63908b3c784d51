// SPDX-License-Identifier: Apache-2.0
// Replaces one agent with the next without a gap: the new agent registers with the kubelet, takes
// over the kubelet's connections from the old agent, and then waits for its own successor.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/loop.hpp"
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
    std::function<bool()> registered;  // the kubelet has registered all our resources
    // Connections of the kubelet to hand over.
    std::function<std::vector<kubelet::LentConnection>()> connections;
    // Whether we have registered this resource.
    std::function<bool(const std::string& resource)> offers;
    std::function<bool()> quiet;
    // The new agent has everything: exit without sending anything more.
    std::function<void()> given;
  };

  AgentHandover(sys::Loop& loop, std::string socket, const Log& log, HandoverCallbacks side);
  // To be called whenever `registered` may have become true. There is no timer for it: an agent
  // without GPUs would wake for nothing, and one that looks late takes over from its successor.
  void look_soon();

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
