// SPDX-License-Identifier: Apache-2.0
// Writes what this node knows about pods into the pods. Works in the background: callers do not
// wait for the API server.
#pragma once

#include "net/kube/api.hpp"
#include "node/agent/log.hpp"
#include "node/pod_shares/share_provisioner.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace gantry::agent {

class PodPatcher {
 public:
  // `first_pause`: after a failure; doubled each time, up to 30 seconds.
  PodPatcher(kube::ClientConfig access, Log log,
             std::chrono::milliseconds first_pause = std::chrono::milliseconds{500});
  ~PodPatcher();
  PodPatcher(const PodPatcher&) = delete;
  PodPatcher& operator=(const PodPatcher&) = delete;

  void tell(pod_shares::PodPatch patch);

 private:
  void work();
  bool told(const pod_shares::PodPatch& patch);  // false: try again later

  kube::Api api_;
  Log log_;
  std::chrono::milliseconds first_pause_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<pod_shares::PodPatch> pending_;
  bool ending_ = false;
  bool forbidden_ = false;  // the missing permission has been logged
  std::thread thread_;
};

}  // namespace gantry::agent
