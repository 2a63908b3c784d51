// SPDX-License-Identifier: Apache-2.0
// Pods, nodes and placements of strangers: what is read can be written and read again, and no sum
// of it wraps.
#include "cluster/podspec/node.hpp"
#include "cluster/podspec/placement.hpp"
#include "cluster/podspec/unhealthy_gpus.hpp"

namespace {

constexpr std::uint64_t kMaxValue = std::uint64_t{1} << 40;

void check(const gantry::podspec::PodRequest& ask, const gantry::podspec::Placement& placement) {
  const auto again = gantry::podspec::parse_placement(to_json(placement));
  GANTRY_ASSERT(again.ok() && *again == placement);
  for (const auto& charge : charges(ask, placement)) GANTRY_ASSERT(charge.slots > 0);
  GANTRY_ASSERT(annotations(ask, placement, {.node = "n"})
                    .count(std::string(gantry::podspec::kPlacementAnnotation)) == 1);
}

void check_pod(const gantry::json::Value& pod) {
  const auto ask = gantry::podspec::parse_request(pod);
  if (!ask.ok() || !*ask) return;
  GANTRY_ASSERT(!(*ask)->containers.empty());
  for (const auto& one : (*ask)->containers) {
    GANTRY_ASSERT(one.gpus > 0 && one.cores <= 100 && !one.resource.empty());
    GANTRY_ASSERT(one.memory.value > 0 && one.memory.on(kMaxValue, 1024) <= kMaxValue);
  }
  const auto placement =
      gantry::podspec::read_placement(pod, **ask, {{0, "GPU-0"}, {1, "GPU-1"}}, 1024);
  if (placement.ok() && *placement) check(**ask, **placement);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto placement = gantry::podspec::parse_placement(text);
  if (placement.ok()) check({}, *placement);
  const auto document = gantry::json::Document::parse(text);
  if (!document.ok()) return 0;
  check_pod(document->root());
  if (const auto marked_unhealthy = gantry::podspec::parse_unhealthy_gpus(document->root())) {
    GANTRY_ASSERT(marked_unhealthy->gpus.size() <= 1024 && marked_unhealthy->ignored.size() < 2048);
  }
  const auto node = gantry::podspec::parse_node(document->root());
  if (!node.ok()) return 0;
  GANTRY_ASSERT(gantry::json::Document::parse(to_json(*node)).ok());
  return 0;
}
