// SPDX-License-Identifier: Apache-2.0
// Pods and nodes in the form that an API server writes.
#pragma once

#include "base/json/document.hpp"
#include "cluster/podspec/node.hpp"
#include "cluster/podspec/placement.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::scheduler {

inline json::Document parsed(const std::string& text) {
  auto document = json::Document::parse(text);
  GANTRY_ASSERT(document.ok());
  return *std::move(document);
}

inline json::Document node_object(const std::string& name, const std::vector<std::uint64_t>& gib) {
  podspec::NodeInfo facts{.name = name};
  for (std::uint32_t i = 0; i < gib.size(); ++i) {
    facts.cards.push_back({.uuid = {fmt::format("GPU-{}-{}", name, i)},
                           .index = i,
                           .mib = gib[i] * 1024,
                           .model = "NVIDIA H200"});
  }
  return parsed(
      fmt::format(R"({{"metadata":{{"name":"{}","annotations":{{"{}":{}}}}},"status":{{}}}})", name,
                  podspec::kSharedGpusAnnotation, json::quote(podspec::to_json(facts))));
}

struct TestPod {
  std::string uid = "u1";
  std::string gpu_mem = "10";  // "": asks for no GPU
  std::string node;
  std::string placement;    // text of the annotation
  std::string annotations;  // more annotations: "\"key\":\"value\""
  std::string phase = "Pending";
  int priority = 0;
  std::uint64_t version = 0;
  std::string deletion_time;  // metadata.deletionTimestamp
  std::string nominated;      // status.nominatedNodeName
  std::string policy;         // spec.preemptionPolicy
};

inline std::string member(const char* key, const std::string& value) {
  return value.empty() ? "" : fmt::format(R"("{}":"{}",)", key, value);
}

inline std::string pod_text(const TestPod& sketch) {
  std::string annotations = sketch.annotations;
  if (!sketch.placement.empty()) {
    annotations += fmt::format(R"({}"{}":{})", annotations.empty() ? "" : ",",
                               podspec::kPlacementAnnotation, json::quote(sketch.placement));
  }
  const auto limits = sketch.gpu_mem.empty()
                          ? std::string()
                          : fmt::format(R"("aliyun.com/gpu-mem":"{}")", sketch.gpu_mem);
  return fmt::format(
      R"({{"metadata":{{"name":"pod-{0}","namespace":"team","uid":"{0}","resourceVersion":"{1}",)"
      R"({7}"annotations":{{{2}}}}},"spec":{{"priority":{3},{4}{8}"containers":[{{"name":"main",)"
      R"("resources":{{"limits":{{{5}}}}}}}]}},"status":{{{9}"phase":"{6}"}}}})",
      sketch.uid, sketch.version, annotations, sketch.priority,
      sketch.node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", sketch.node), limits,
      sketch.phase, member("deletionTimestamp", sketch.deletion_time),
      member("preemptionPolicy", sketch.policy), member("nominatedNodeName", sketch.nominated));
}

inline json::Document pod_object(const TestPod& sketch) {
  return parsed(pod_text(sketch));
}

// The annotation of a pod that has `gib` GiB of one card.
inline std::string on_card(const std::string& uuid, std::uint64_t gib) {
  return podspec::to_json(podspec::Placement{
      {.container = "main", .parts = {{.uuid = {uuid}, .index = 0, .mib = gib * 1024}}}});
}

}  // namespace gantry::scheduler
