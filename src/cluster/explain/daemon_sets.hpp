// SPDX-License-Identifier: Apache-2.0
// DaemonSets that serve GPUs but run nowhere: no node has the label that they ask for, or the API
// server refuses their pods. Then no node offers a GPU, and no list of pods says why. Pure.
#pragma once

#include "base/json/document.hpp"
#include "cluster/explain/explanation.hpp"
#include "cluster/explain/node_rejection.hpp"
#include "cluster/explain/pod_security.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gantry::explain {

class GpuDaemonSets {
 public:
  // Lists come in pages. All DaemonSets come before the first nodes and events.
  void add(json::Value daemon_sets);
  void compare(json::Value nodes);
  // Events with the reason FailedCreate.
  void add_refusals(json::Value events);

  // Completes the cause and the remedy of a step that found no node with the resource. Changes
  // nothing if every DaemonSet has a node and its pods.
  void explain(Step& step) const;

 private:
  struct DaemonSet {
    std::string name_space, name;
    json::Document pod;       // its template
    bool lacks_pods = false;  // on nodes that it wants
    bool has_node = false;
    std::string node;  // the node whose label comes closest
    UnmetLabel unmet;
    std::optional<PodRefusal> refusal;
  };
  bool explain_refusal(Step& step) const;

  std::vector<DaemonSet> sets_;
  std::size_t nodes_ = 0;
};

}  // namespace gantry::explain
