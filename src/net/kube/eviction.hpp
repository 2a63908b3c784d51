// SPDX-License-Identifier: Apache-2.0
// Asks a pod to go by the Eviction API, which holds to PodDisruptionBudgets.
#pragma once

#include "net/kube/api.hpp"

#include <cstdint>
#include <string>

namespace gantry::kube {

struct Eviction {
  enum class Mode : std::uint8_t {
    Do,
    Ask  // whether it would be done; nothing changes
  };
  std::string name_space;
  std::string pod;
  std::string uid;  // another pod of that name stays
  Mode mode = Mode::Do;
};

enum class EvictionOutcome : std::uint8_t {
  Done,       // it is going, or would
  Gone,       // it was gone already, or its name belongs to another pod
  Protected,  // a budget says not now, or the server does: later
  Refused,    // rights, a webhook
  Unknown     // no answer: the watch will tell
};

struct EvictionResult {
  EvictionOutcome evicted = EvictionOutcome::Unknown;
  std::string text;  // for people; "" when done
};

EvictionResult evict(Api& api, const Eviction& eviction);

// status.nominatedNodeName: where a pod that waits is going to be.
Status nominate(Api& api, const std::string& name_space, const std::string& pod,
                const std::string& uid, const std::string& node);

}  // namespace gantry::kube
