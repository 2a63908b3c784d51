// SPDX-License-Identifier: Apache-2.0
// Pods, nodes and placements of strangers: what is read can be written and read again, and no sum
// of it wraps.
#include "cluster/podspec/barred.hpp"
#include "cluster/podspec/node.hpp"
#include "cluster/podspec/placement.hpp"

namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 40;

void check(const gantry::podspec::PodAsk& ask, const gantry::podspec::Placement& placement) {
  const auto again = gantry::podspec::placement_from(to_text(placement));
  GANTRY_ASSERT(again.ok() && *again == placement);
  for (const auto& charge : charges(ask, placement)) GANTRY_ASSERT(charge.slots > 0);
  GANTRY_ASSERT(
      annotations(ask, placement, {.node = "n"}).count(std::string(gantry::podspec::kPlacement)) ==
      1);
}

void check_pod(const gantry::json::Value& pod) {
  const auto ask = gantry::podspec::ask_of(pod);
  if (!ask.ok() || !*ask) return;
  GANTRY_ASSERT(!(*ask)->containers.empty());
  for (const auto& one : (*ask)->containers) {
    GANTRY_ASSERT(one.gpus > 0 && one.cores <= 100 && !one.resource.empty());
    GANTRY_ASSERT(one.memory.value > 0 && one.memory.on(kMost, 1024) <= kMost);
  }
  const auto placement =
      gantry::podspec::placement_of(pod, **ask, {{0, "GPU-0"}, {1, "GPU-1"}}, 1024);
  if (placement.ok() && *placement) check(**ask, **placement);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto placement = gantry::podspec::placement_from(text);
  if (placement.ok()) check({}, *placement);
  const auto document = gantry::json::Document::parse(text);
  if (!document.ok()) return 0;
  check_pod(document->root());
  if (const auto barred = gantry::podspec::barred_of(document->root())) {
    GANTRY_ASSERT(barred->gpus.size() <= 1024 && barred->ignored.size() < 2048);
  }
  const auto node = gantry::podspec::node_of(document->root());
  if (!node.ok()) return 0;
  GANTRY_ASSERT(gantry::json::Document::parse(to_text(*node)).ok());
  return 0;
}
