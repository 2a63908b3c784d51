// SPDX-License-Identifier: Apache-2.0
// Pod security admission: which rule of its namespace a pod breaks, and the label that lets it in.
// Pure.
#pragma once

#include "base/json/document.hpp"
#include "cluster/explain/explanation.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::explain {

inline constexpr std::string_view kEnforceLabel = "pod-security.kubernetes.io/enforce";

// What the level "baseline" forbids of that which GPU software uses: "privileged container main".
// Empty: neither baseline nor any laxer level refuses the pod for these.
std::vector<std::string> baseline_violations(json::Value pod);

// For a pod that does not exist yet. `level` is what its namespace enforces; "" if that is not
// known. No step if nothing would refuse the pod.
std::optional<Step> pod_security_step(json::Value pod, std::string_view name_space,
                                      std::string_view level);

// A controller whose pods the API server refuses. Such pods never exist; only events tell.
struct PodRefusal {
  std::string kind;  // of the controller: "DaemonSet"
  std::string name_space, name;
  std::string level;  // "baseline"
  std::string rules;  // in the API server's words: "hostPath volumes (volume \"host\")"
};
std::optional<PodRefusal> pod_refusal(json::Value event);

// "namespace gpu enforces the pod security level baseline, which forbids: ..."
std::string describe(const PodRefusal& refusal);
std::string remedy_for_refusal(const PodRefusal& refusal);

// For the name of a pod that does not exist, or of its controller: the refusal among the events of
// the namespace.
std::optional<Step> refused_pod_step(json::Value events, std::string_view name);

}  // namespace gantry::explain
