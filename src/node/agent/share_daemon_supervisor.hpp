// SPDX-License-Identifier: Apache-2.0
// The keeper of shares (`gantry share serve`) as the agent sees it: a process of its own that must
// run as long as there are shares, whoever made them. It is not our child: an upgrade of the agent
// does not touch it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/log.hpp"
#include "sharing/daemon/client.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gantry::agent {

class ShareDaemonSupervisor {
 public:
  struct Options {
    std::vector<std::string> program;  // what becomes the keeper
    std::chrono::milliseconds look_every{500};
    std::chrono::milliseconds longest_back_off{30'000};
  };
  ShareDaemonSupervisor(sys::Loop& loop, const sys::Host& host, Log log, Options options);
  ShareDaemonSupervisor(const ShareDaemonSupervisor&) = delete;
  ShareDaemonSupervisor& operator=(const ShareDaemonSupervisor&) = delete;

  bool runs() const { return client_.has_value(); }

 private:
  void look();
  void on_gone();
  bool has_shares() const;

  sys::Loop& loop_;
  const sys::Host& host_;
  Log log_;
  Options options_;
  std::optional<daemon::Client> client_;  // tells us its end at once
  sys::Loop::Watch gone_;
  std::chrono::milliseconds back_off_{0};
  std::chrono::steady_clock::time_point not_before_{};
  sys::Loop::Timer timer_;
};

// Makes the share of a container, or finds the one it has. `name` is unique on the node: a pod's
// UID and the container's name, say. What is to be mounted at /run/gantry/fence is in its
// `directory`. Starts the keeper where none runs; may take seconds, so not for the agent's loop.
Result<daemon::ShareState> share_for_container(const sys::Host& host,
                                               const std::vector<std::string>& program,
                                               const std::string& name, policy::ShareText limits);

}  // namespace gantry::agent
