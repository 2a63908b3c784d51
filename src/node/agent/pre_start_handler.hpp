// SPDX-License-Identifier: Apache-2.0
// Handles the call just before a container with GPUs is created. At this time the kubelet's
// checkpoint says which pod has the devices, so the agent learns here, and not at Allocate, which
// pod they are for.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/current_offer.hpp"
#include "node/agent/pod_shares.hpp"
#include "node/kubelet/checkpoint.hpp"
#include "node/kubelet/plugin.hpp"

#include <chrono>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace gantry::agent {

// How often a request looks for its container in the kubelet's checkpoint.
struct CheckpointRetries {
  std::chrono::milliseconds pause{20};
  int looks = 50;  // one second in total; the kubelet waits thirty
};

class PreStartHandler {
 public:
  // `directory`: the kubelet's directory with its checkpoint, inside the host's root.
  PreStartHandler(sys::Loop& loop, const sys::Host& host, std::string directory, const Log& log,
                  CheckpointRetries retries = {});
  ~PreStartHandler();

  // Writes the grant of every container that has exactly these devices, then lets the container
  // start. If the checkpoint cannot be read or names no container, the container still starts: its
  // devices come from the answer to Allocate, and the grant only adds what an environment variable
  // asks for. A container does not start if its grant cannot be written, or if its stored answer
  // names other GPUs than its devices now are.
  void prepare(const std::string& resource, kubelet::PreStartRequest question,
               std::shared_ptr<const CurrentOffer> offering);

  // `slots` provisions resources that have slots; without it, their containers do not start.
  void set_pod_shares(PodShares* slots) { pod_shares_ = slots; }

  // Removes grants of pods that the checkpoint does not name, also what an agent that was killed
  // left without a grant. Call it at the start: an agent that is killed again and again never
  // lives long enough for the function below. Grants with a share are left to PodShares.
  void remove_grants_of_unknown_pods();

  // Removes grants of pods that are gone. The checkpoint keeps an ended pod until the next
  // allocation, and podresources has no UIDs. So a pod counts as alive while podresources lists
  // devices for a container that the checkpoint names. It is gone when it was missing twice in a
  // row, or when the checkpoint does not name it. Reads nothing if the list has not changed and no
  // grant was written.
  void remove_grants_of_gone_pods(const std::vector<model::DeviceAllocation>& listed);

 private:
  struct WaitingRequest;
  enum class PreStartState : std::uint8_t { NotYet, Ready, InSlots };  // InSlots: PodShares answers
  Result<PreStartState> try_once(const WaitingRequest& waiting);
  void give_up(const WaitingRequest& waiting) const;
  Status fill(const WaitingRequest& waiting, const kubelet::Checkpoint& checkpoint,
              const std::vector<model::DeviceAllocation>& holders);
  Status check_answer(const WaitingRequest& waiting, const kubelet::Checkpoint& checkpoint,
                      const model::DeviceAllocation& holder) const;
  Status write_grant(const model::DeviceAllocation& holder, const model::Grant& grant) const;
  void remove_grants(const std::string& pod_uid) const;
  void look_again(std::list<WaitingRequest>::iterator waiting);

  sys::Loop& loop_;
  const sys::Host& host_;
  std::string directory_;
  const Log& log_;
  CheckpointRetries retries_;
  PodShares* pod_shares_ = nullptr;
  std::list<WaitingRequest> waiting_;
  std::set<std::string> missing_;                // pods that were missing at the last check
  std::vector<model::DeviceAllocation> listed_;  // the list at the last check
  bool look_at_grants_ = true;
};

}  // namespace gantry::agent
