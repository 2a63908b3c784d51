// SPDX-License-Identifier: Apache-2.0
// The shared GPUs of a node. The node's agent writes them into the Node (kSharedGpusAnnotation);
// the scheduler, `gantry inspect` and `gantry why` read them.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::podspec {

inline constexpr std::string_view kSharedGpusAnnotation = "gantry.dev/shared-gpus";
inline constexpr std::string_view kCordonAnnotation =
    "hami.io/device-cordon";  // UUIDs, separated by commas

struct CardInfo {
  model::GpuUuid uuid;  // with gpushare's own device plugin, which reports none: "NODE/INDEX"
  std::uint32_t index = 0;
  std::uint64_t mib = 0;  // that can be allocated
  std::uint32_t slots = 32;
  std::string model;  // "NVIDIA H200"
  std::int32_t numa = -1;
  bool healthy = true;
  // By a ConfigMap (podspec/unhealthy_gpus.hpp); not part of the annotation.
  bool marked_unhealthy = false;
  std::vector<std::int32_t> links;  // to each card of the list; a larger number is a better link
  bool usable() const { return healthy && !marked_unhealthy; }
  bool operator==(const CardInfo&) const = default;
};

struct NodeInfo {
  std::string name;
  std::string address;            // InternalIP; "" if there is none
  std::uint64_t unit_mib = 1024;  // of aliyun.com/gpu-mem: 1024 or 1
  std::vector<CardInfo> cards;    // by index; empty: no shared GPU
  std::uint32_t whole_gpus = 0;   // allocatable nvidia.com/gpu that are cards, not slots
  bool ready = true;
  bool operator==(const NodeInfo&) const = default;
};

std::string to_json(const NodeInfo& facts);  // the value of the annotation: unit and cards

// Reads a Node object. Without the annotation but with aliyun.com/gpu-mem and gpu-count, the node
// belongs to gpushare itself: it has equal cards without UUID, named "NODE/INDEX". Cordoned cards
// are unhealthy. Corrupt if the annotation is not valid.
Result<NodeInfo> parse_node(const json::Value& node);

}  // namespace gantry::podspec
