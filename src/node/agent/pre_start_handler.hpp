// SPDX-License-Identifier: Apache-2.0
// What happens just before a container with GPUs is created: the kubelet has written down which
// pod has the devices, so here, and not at Allocate, the agent learns for whom they are.
#pragma once

#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/current_offer.hpp"
#include "node/agent/log.hpp"
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

class PreStartHandler {
 public:
  // `directory`: the kubelet's, with its checkpoint; inside the host's root.
  PreStartHandler(sys::Loop& loop, const sys::Host& host, std::string directory, const Log& log);
  ~PreStartHandler();

  // Writes the grant of every container that has exactly these devices, then lets it start. A
  // checkpoint that names nobody, or that we cannot read, does not keep the container from
  // starting: its devices come from the answer to Allocate, the grant only ever adds what an
  // environment variable asks for. A container whose stored answer leads to other GPUs by now does
  // not start.
  void prepare(const std::string& resource, kubelet::PreStartRequest question,
               std::shared_ptr<const CurrentOffer> offering);

  // Resources in slots are filled there; without it their containers do not start.
  void set_pod_shares(PodShares* slots) { pod_shares_ = slots; }

  // Removes grants of pods that are gone. The checkpoint keeps an ended pod until the next
  // allocation, podresources has no UIDs: a pod is alive while a container that the first names
  // has devices by the second. Gone means: missing twice in a row. Nothing is read while the list
  // is as it was and no grant was written.
  void remove_grants_of_gone_pods(const std::vector<model::DeviceAllocation>& listed);

 private:
  struct WaitingRequest;
  enum class PreStartState : std::uint8_t {
    NotYet,
    Ready,
    InSlots
  };  // InSlots: answered from there
  Result<PreStartState> try_once(const WaitingRequest& waiting);
  void give_up(const WaitingRequest& waiting) const;
  Status fill(const WaitingRequest& waiting, const kubelet::Checkpoint& checkpoint,
              const std::vector<model::DeviceAllocation>& holders);
  Status check_answer(const WaitingRequest& waiting, const kubelet::Checkpoint& checkpoint,
                      const model::DeviceAllocation& holder) const;
  void look_again(std::list<WaitingRequest>::iterator waiting);

  sys::Loop& loop_;
  const sys::Host& host_;
  std::string directory_;
  const Log& log_;
  PodShares* pod_shares_ = nullptr;
  std::list<WaitingRequest> waiting_;
  std::set<std::string> missing_;                // pods, at the last look
  std::vector<model::DeviceAllocation> listed_;  // then
  bool look_at_grants_ = true;
};

}  // namespace gantry::agent
