// SPDX-License-Identifier: Apache-2.0
// The placement of a pod's shares. The scheduler writes it into the pod together with the node's
// name, in one request (a Binding carries annotations), so a pod never has one without the other.
// The node reads it before a container starts.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/podspec/request.hpp"
#include "gpu/model/gpu_share.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::podspec {

inline constexpr std::string_view kPlacementAnnotation = "gantry.dev/placement";

struct ContainerPlacement {
  std::string container;
  std::vector<model::GpuShare> parts;  // one for each GPU, in the container's numbering
  bool operator==(const ContainerPlacement&) const = default;
};

using Placement = std::vector<ContainerPlacement>;  // in the order of PodRequest.containers

std::string to_json(const Placement& placement);  // JSON, one line
Result<Placement> parse_placement(std::string_view text);

// What a pod takes of one GPU during its life: the sum of the containers that run together, or the
// largest init container if that is more.
struct Charge {
  model::GpuUuid uuid;
  std::uint64_t mib = 0;
  std::uint32_t cores = 0;
  std::uint32_t slots = 0;
  bool operator==(const Charge&) const = default;
};
std::vector<Charge> charges(const PodRequest& ask, const Placement& placement);  // by uuid

// All annotations of the Binding: kPlacementAnnotation, and those that tools of the request's
// contract read (ALIYUN_COM_GPU_MEM_*, or hami.io/*). `unit_mib` is the node's unit, `card_mib` is
// by uuid.
struct AnnotationInput {
  std::string node;
  std::uint64_t unit_mib = 1024;
  std::map<model::GpuUuid, std::uint64_t> card_mib;
  std::map<model::GpuUuid, std::string> model;
  std::int64_t unix_ns = 0;
};
std::map<std::string, std::string> annotations(const PodRequest& ask, const Placement& placement,
                                               const AnnotationInput& facts);

// The placement of a pod that has a node: from kPlacementAnnotation, or from what gpushare's or
// HAMi's own scheduler wrote. gpushare names GPUs by index, and `uuid_of` gives their UUIDs.
// nullopt: not placed yet.
struct CardId {
  std::uint32_t index = 0;
  model::GpuUuid uuid;
};
Result<std::optional<Placement>> read_placement(const json::Value& pod, const PodRequest& ask,
                                                const std::vector<CardId>& cards,
                                                std::uint64_t unit_mib);

// Whether an annotation of this name is a placement of ours, gpushare's or HAMi's. Only schedulers
// and nodes write them, not users.
bool is_placement_annotation(std::string_view annotation);

// Checks that a placement matches this request: the same containers, each with the requested number
// of different GPUs. Corrupt if not, for example if it was written by hand.
Status check_placement_shape(const PodRequest& ask, const Placement& placement);

}  // namespace gantry::podspec
