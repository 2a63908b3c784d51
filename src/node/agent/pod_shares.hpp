// SPDX-License-Identifier: Apache-2.0
// GPUs in shares, as the agent runs them: slots are filled and ended in a thread of their own,
// because the keeper may have to start and the API server may be slow; the loop waits for nothing.
#pragma once

#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "net/kube/informer.hpp"
#include "node/agent/log.hpp"
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
    std::vector<std::string> keeper;  // the program that becomes one
    std::function<Result<publish::ShareSpecOptions>(const sys::Host&)> spec;
    std::optional<kube::ClientConfig> access;  // none: no API server
  };
  PodShares(sys::Loop& loop, const sys::Host& host, Options options, const Log& log);
  ~PodShares();
  PodShares(const PodShares&) = delete;
  PodShares& operator=(const PodShares&) = delete;

  // What the node has in shares from now on.
  void set_machine(pod_shares::NodeSnapshot machine);

  // Answers the question, later and in the loop.
  void fill(pod_shares::ContainerStart start, kubelet::PreStartRequest question);

  // Ends what pods had that are gone: neither the kubelet nor the API server knows them. `gone`:
  // pods with grants that the kubelet does not tell of; who has been given something since is none
  // of them. `remembered`: those of its checkpoint, which may be over, and count where the API
  // server has told nothing yet.
  void end(std::set<std::string> gone, std::set<std::string> remembered);

 private:
  Result<std::string> pod(const std::string& uid);
  void fill_now(const pod_shares::ContainerStart& start, std::uint64_t number);
  void answer(std::uint64_t number, const Status& outcome);
  pod_shares::NodeSnapshot machine() const;

  sys::Loop& loop_;
  const sys::Host& host_;
  Options options_;
  Log log_;
  mutable std::mutex mutex_;
  pod_shares::NodeSnapshot machine_;
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);  // for what is posted to the loop
  std::map<std::uint64_t, kubelet::PreStartRequest> waiting_;  // the loop's
  std::uint64_t questions_ = 0;
  bool sweeping_ = false;           // the loop's
  std::set<std::string> reported_;  // the worker's: notes already told
  pod_shares::PodCache pods_;
  pod_shares::ShareProvisioner provisioner_;
  std::optional<kube::Api> api_;  // the worker's
  std::unique_ptr<PodPatcher> patcher_;
  std::unique_ptr<kube::Informer> informer_;
  Worker worker_;  // last: it ends before what it uses
};

// What the checkpoint says of a container with exactly these ids of a resource of slots.
// `is_slots`: whether a resource has ids that are slots.
pod_shares::ContainerStart container_start(
    const kubelet::Checkpoint& checkpoint, const std::vector<model::DeviceAllocation>& holders,
    const std::function<bool(const std::string& resource)>& is_slots);

}  // namespace gantry::agent
