// SPDX-License-Identifier: Apache-2.0
// Keeps the share daemon (`gantry share serve`) running as long as there are shares, no matter
// which program created them. The daemon is not a child of the agent, so an upgrade of the agent
// does not affect it.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "sharing/daemon/client.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gantry::agent {

class ShareDaemonSupervisor {
 public:
  struct Options {
    std::vector<std::string> program;             // command line that starts the share daemon
    std::chrono::milliseconds look_every{500};    // while there are shares but no daemon
    std::chrono::milliseconds rest_every{1'800};  // otherwise
    std::chrono::milliseconds longest_back_off{30'000};
    std::chrono::milliseconds hung_after{5'000};  // without a life sign of the daemon
  };
  ShareDaemonSupervisor(sys::Loop& loop, const sys::Host& host, Log log, Options options);
  ShareDaemonSupervisor(const ShareDaemonSupervisor&) = delete;
  ShareDaemonSupervisor& operator=(const ShareDaemonSupervisor&) = delete;

  bool runs() const { return client_.has_value(); }

 private:
  void look();
  void connect_or_start();
  void look_again_in(std::chrono::milliseconds pause);
  void kill_if_hung();
  void on_gone();
  bool has_shares() const;

  sys::Loop& loop_;
  const sys::Host& host_;
  Log log_;
  Options options_;
  std::optional<daemon::Client> client_;  // reports at once when the daemon exits
  sys::Loop::Watch gone_;
  std::chrono::milliseconds back_off_{0};
  std::chrono::milliseconds pause_{0};
  std::chrono::steady_clock::time_point not_before_{};
  sys::Loop::Timer timer_;
};

}  // namespace gantry::agent
