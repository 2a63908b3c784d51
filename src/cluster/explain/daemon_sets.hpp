// SPDX-License-Identifier: Apache-2.0
// DaemonSets that serve GPUs but run nowhere, because no node has the label that they ask for. Then
// no node offers a GPU, and no table of kubectl says why. Pure.
#pragma once

#include "base/json/document.hpp"
#include "cluster/explain/explanation.hpp"
#include "cluster/explain/node_rejection.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gantry::explain {

class GpuDaemonSets {
 public:
  // Lists come in pages. All DaemonSets come before the first nodes.
  void add(json::Value daemon_sets);
  void compare(json::Value nodes);

  // Completes the cause and the remedy of a step that found no node with the resource. Changes
  // nothing if every DaemonSet has a node.
  void explain(Step& step) const;

 private:
  struct DaemonSet {
    std::string name_space, name;
    json::Document pod;  // its template
    bool has_node = false;
    std::string node;  // the node whose label comes closest
    UnmetLabel unmet;
  };
  std::vector<DaemonSet> sets_;
  std::size_t nodes_ = 0;
};

}  // namespace gantry::explain
