// SPDX-License-Identifier: Apache-2.0
// The shared GPUs of a node, as its agent writes them into the Node (annotation kSharedGpus) and
// the scheduler, `gantry inspect` and `gantry why` read them.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::podspec {

inline constexpr std::string_view kSharedGpusAnnotation = "gantry.dev/shared-gpus";
inline constexpr std::string_view kCordonAnnotation =
    "hami.io/device-cordon";  // UUIDs, with commas

struct CardInfo {
  std::string uuid;
  std::uint32_t index = 0;
  std::uint64_t mib = 0;  // what may be promised
  std::uint32_t slots = 32;
  std::string model;  // "NVIDIA H200"
  std::int32_t numa = -1;
  bool healthy = true;
  bool marked_unhealthy = false;    // by a ConfigMap (ask/barred.hpp): no part of the annotation
  std::vector<std::int32_t> links;  // how well it reaches each card of the list; greater is nearer
  bool usable() const { return healthy && !marked_unhealthy; }
  bool operator==(const CardInfo&) const = default;
};

struct NodeInfo {
  std::string name;
  std::string address;            // InternalIP; "" where there is none
  std::uint64_t unit_mib = 1024;  // of aliyun.com/gpu-mem: 1024 or 1
  std::vector<CardInfo> cards;    // by index; empty: no shared GPU here
  std::uint32_t whole_gpus = 0;   // allocatable nvidia.com/gpu that are cards, not slots
  bool ready = true;
  bool operator==(const NodeInfo&) const = default;
};

std::string to_json(const NodeInfo& facts);  // the annotation's value: unit and cards

// From a Node object: the annotation; where there is none but aliyun.com/gpu-mem and gpu-count are,
// the node is gpushare's own: equal cards without UUID, named "NODE/INDEX". Cordoned cards are not
// healthy. Corrupt for an annotation that is none.
Result<NodeInfo> parse_node(const json::Value& node);

}  // namespace gantry::podspec
