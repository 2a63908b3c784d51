// SPDX-License-Identifier: Apache-2.0
// Writes what this node knows about pods into the pods. Works in the background: callers do not
// wait for the API server.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/background_task.hpp"
#include "net/kube/api.hpp"
#include "node/pod_shares/share_provisioner.hpp"

#include <chrono>
#include <deque>
#include <mutex>

namespace gantry::agent {

class PodPatcher {
 public:
  // `first_pause`: after a failure; doubled each time, up to 30 seconds.
  PodPatcher(kube::ClientConfig access, Log log,
             std::chrono::milliseconds first_pause = std::chrono::milliseconds{500});
  PodPatcher(const PodPatcher&) = delete;
  PodPatcher& operator=(const PodPatcher&) = delete;

  void tell(pod_shares::PodPatch patch);

 private:
  Status work();                                          // writes one patch
  Status tell_server(const pod_shares::PodPatch& patch);  // an error: try again later

  kube::Api api_;
  Log log_;
  std::mutex mutex_;
  std::deque<pod_shares::PodPatch> pending_;
  bool forbidden_ = false;    // the missing permission has been logged
  sys::BackgroundTask task_;  // last: it uses everything above
};

}  // namespace gantry::agent
