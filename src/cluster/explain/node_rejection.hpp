// SPDX-License-Identifier: Apache-2.0
// Why a node rejects a pod: taints, selectors, affinity, a cordon.
#pragma once

#include "base/json/document.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gantry::explain {

struct NodeRejection {
  std::string what;    // "taint gpu=x:NoSchedule"; "": the node accepts the pod
  std::string remedy;  // a line for the manifest, or a command
};
NodeRejection node_rejection(json::Value node, json::Value pod);

// A label of a nodeSelector or of a required node affinity that a node does not meet.
struct UnmetLabel {
  std::string wanted;      // "gpu=a100", "gpu/nividia", "gpu NotIn [t4]"
  std::string wanted_key;  // "gpu/nividia"
  // A value that meets it; "": any value does; nullopt: no label that could be added does.
  std::optional<std::string> wanted_value;
  std::string near_key;  // a label of the node that comes close: "gpu/nvidia"; "": none does
  std::string near_value;
  std::size_t distance = 0;  // between the keys; 0 if only the value differs
};
std::optional<UnmetLabel> unmet_label(json::Value node, json::Value pod);

// Letters, digits and "./-_" only. Text from a pod may become part of a command that a user pastes.
bool is_plain_word(std::string_view text);

}  // namespace gantry::explain
