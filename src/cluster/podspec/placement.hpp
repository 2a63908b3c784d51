// SPDX-License-Identifier: Apache-2.0
// Where a pod's shares are. The scheduler writes it into the pod together with the node's name, in
// one request (a Binding carries annotations), so there is no moment at which one is there without
// the other. The node reads it before a container starts.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/podspec/request.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::podspec {

inline constexpr std::string_view kPlacementAnnotation = "gantry.dev/placement";

struct GpuAllocation {
  std::string uuid;
  std::uint32_t index = 0;  // on its node, for people and for the legacy annotations
  std::uint64_t mib = 0;
  std::uint32_t cores = 0;
  bool operator==(const GpuAllocation&) const = default;
};

struct ContainerPlacement {
  std::string container;
  std::vector<GpuAllocation> parts;  // one for each GPU, as the container shall number them
  bool operator==(const ContainerPlacement&) const = default;
};

using Placement = std::vector<ContainerPlacement>;  // as PodRequest.containers

std::string to_json(const Placement& placement);  // JSON, one line
Result<Placement> parse_placement(std::string_view text);

// What a pod takes of one GPU while it lives: the sum of what runs together, or the greatest init
// container where that is more.
struct Charge {
  std::string uuid;
  std::uint64_t mib = 0;
  std::uint32_t cores = 0;
  std::uint32_t slots = 0;
  bool operator==(const Charge&) const = default;
};
std::vector<Charge> charges(const PodRequest& ask, const Placement& placement);  // by uuid

// Everything that the Binding carries: kPlacement, and what tools of the ask's contract read
// (ALIYUN_COM_GPU_MEM_*, or hami.io/*). `unit_mib`: the node's unit, `card_mib` by uuid.
struct AnnotationInput {
  std::string node;
  std::uint64_t unit_mib = 1024;
  std::map<std::string, std::uint64_t> card_mib;
  std::map<std::string, std::string> model;
  std::int64_t unix_ns = 0;
};
std::map<std::string, std::string> annotations(const PodRequest& ask, const Placement& placement,
                                               const AnnotationInput& facts);

// Of a pod that has a node: kPlacement, else what gpushare's or HAMi's own scheduler wrote there.
// gpushare names GPUs by index: `uuid_of` knows them. nullopt: none yet.
struct CardId {
  std::uint32_t index = 0;
  std::string uuid;
};
Result<std::optional<Placement>> read_placement(const json::Value& pod, const PodRequest& ask,
                                                const std::vector<CardId>& cards,
                                                std::uint64_t unit_mib);

// Whether an annotation of this name says where a pod is: ours, gpushare's or HAMi's. Schedulers
// and nodes write them, users do not.
bool is_placement_annotation(std::string_view annotation);

// Whether a placement is one for this ask: its containers and no others, each with as many
// different GPUs as it asks for. Corrupt where it is not, as when somebody wrote it by hand.
Status check_placement_shape(const PodRequest& ask, const Placement& placement);

}  // namespace gantry::podspec
