// SPDX-License-Identifier: Apache-2.0
// Evicts a pod through the Eviction API, which respects PodDisruptionBudgets.
#pragma once

#include "base/core/object_ref.hpp"
#include "net/kube/api.hpp"

#include <cstdint>
#include <string>

namespace gantry::kube {

struct Eviction {
  enum class Mode : std::uint8_t {
    Do,
    Ask  // dry run: nothing changes
  };
  PodRef pod;  // a pod with the same name and another uid is not evicted
  Mode mode = Mode::Do;
};

enum class EvictionOutcome : std::uint8_t {
  Done,       // the pod is being evicted, or would be
  Gone,       // the pod does not exist any more, or another pod has its name
  Protected,  // a budget or the server forbids it now; try later
  Refused,    // permissions, a webhook
  Unknown     // no answer: the watch will show the result
};

struct EvictionResult {
  EvictionOutcome evicted = EvictionOutcome::Unknown;
  std::string text;  // for people; "" when done
};

EvictionResult evict(Api& api, const Eviction& eviction);

// Sets status.nominatedNodeName: the node on which a waiting pod will run.
Status nominate(Api& api, const PodRef& pod, const std::string& node);

}  // namespace gantry::kube
