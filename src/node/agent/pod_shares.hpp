// SPDX-License-Identifier: Apache-2.0
// Runs shared GPUs for the agent. Shares are provisioned and ended in a separate thread, because
// the share daemon may have to start first and the API server may be slow. The loop never waits.
#pragma once

#include "base/core/clock.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "net/kube/informer.hpp"
#include "node/agent/pod_patcher.hpp"
#include "node/agent/worker.hpp"
#include "node/kubelet/checkpoint.hpp"
#include "node/kubelet/plugin.hpp"
#include "node/pod_shares/pod_cache.hpp"
#include "node/pod_shares/share_provisioner.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gantry::agent {

class PodShares {
 public:
  struct Options {
    std::string node;
    std::vector<std::string> share_daemon;  // command line that starts the share daemon
    std::function<Result<publish::ShareSpecOptions>(const sys::Host&)> spec;
    std::optional<kube::ClientConfig> access;  // nullopt: there is no API server
  };
  PodShares(sys::Loop& loop, const sys::Host& host, Options options, const Log& log);
  ~PodShares();
  PodShares(const PodShares&) = delete;
  PodShares& operator=(const PodShares&) = delete;

  // Sets the shared GPUs of the node from now on.
  void set_machine(pod_shares::NodeSnapshot machine);

  // Answers the request later, in the loop.
  void fill(pod_shares::ContainerStart start, kubelet::PreStartRequest question);

  // Ends the shares of pods that are gone, which means that neither the kubelet nor the API server
  // knows them. `gone`: pods with grants that the kubelet does not list; pods that got a grant in
  // the meantime are not ended. `remembered`: pods in the kubelet's checkpoint, which may have
  // ended; they count as alive while the API server has not answered.
  void end(std::set<std::string> gone, std::set<std::string> remembered);

 private:
  void report(const pod_shares::ShareNote& note);
  Result<std::string> pod(const std::string& uid);
  Result<std::string> read_pod(const std::string& uid);
  void fill_now(const pod_shares::ContainerStart& start, std::uint64_t number);
  void answer(std::uint64_t number, const Status& outcome);
  pod_shares::NodeSnapshot machine() const;

  sys::Loop& loop_;
  const sys::Host& host_;
  Options options_;
  Log log_;
  mutable std::mutex mutex_;
  pod_shares::NodeSnapshot machine_;
  // Keeps callbacks that were posted to the loop from using a deleted object.
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
  std::map<std::uint64_t, kubelet::PreStartRequest> waiting_;  // used only in the loop
  std::uint64_t questions_ = 0;
  bool sweeping_ = false;                     // used only in the loop
  std::set<pod_shares::ShareNote> reported_;  // used only in the worker
  pod_shares::PodCache pods_;
  pod_shares::ShareProvisioner provisioner_;
  std::optional<kube::Api> api_;  // used only in the worker
  // Until then the API server is not asked for a pod, because it did not answer in time. Used only
  // in the worker.
  Clock::time_point ask_again_;
  std::unique_ptr<PodPatcher> patcher_;
  std::unique_ptr<kube::Informer> informer_;
  Worker worker_;  // last, because it must end before the members that it uses
};

// What the checkpoint says about the container that has exactly these ids of a resource with slots.
// `is_slots` says whether the ids of a resource are slots.
pod_shares::ContainerStart container_start(
    const kubelet::Checkpoint& checkpoint, const std::vector<model::DeviceAllocation>& holders,
    const std::function<bool(const std::string& resource)>& is_slots);

}  // namespace gantry::agent
