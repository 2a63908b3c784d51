// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "cluster/podspec/affinity_internal.hpp"
#include "cluster/podspec/limits_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::podspec {
namespace {

constexpr std::size_t kListLimit = 256;

Error wrong(std::string_view key, std::string_view value, std::string_view instead) {
  return Error(Errc::Invalid,
               fmt::format("annotation {}: \"{}\" is not valid", key, shorten(value)))
      .advise(fmt::format("write {}", instead));
}

Result<std::vector<std::string>> list(const json::Value& pod, std::string_view key) {
  GANTRY_TRY(const auto text, annotation(pod, key));
  std::vector<std::string> items;
  for (const auto piece : split(text, ',')) {
    if (trim(piece).empty()) continue;
    if (items.size() == kListLimit)
      return Error(Errc::Invalid,
                   fmt::format("annotation {} has more than {} entries", key, kListLimit));
    items.emplace_back(trim(piece));
  }
  if (items.empty() && !text.empty()) return wrong(key, text, "names separated by commas");
  return items;
}

Status merge(std::optional<PlacementPolicy>& order, PlacementPolicy wanted, std::string_view key,
             std::string_view other) {
  if (order && *order != wanted)
    return Error(Errc::Invalid,
                 fmt::format("annotations {} and {} contradict each other", key, other))
        .advise("keep one");
  order = wanted;
  return {};
}

Status merge(TopologyPolicy& topology, TopologyPolicy wanted, std::string_view key) {
  if (topology != TopologyPolicy::Any && topology != wanted)
    return Error(Errc::Invalid,
                 fmt::format("annotation {} and another annotation ask both for GPUs of one NUMA "
                             "node and for the best connected GPUs",
                             key))
        .advise("keep one");
  topology = wanted;
  return {};
}

Status read_order(const json::Value& pod, std::string_view key,
                  std::optional<PlacementPolicy>& order) {
  GANTRY_TRY(const auto text, annotation(pod, key));
  if (text.empty()) return {};
  if (text != "pack" && text != "spread") return wrong(key, text, "pack or spread");
  order = text == "pack" ? PlacementPolicy::Pack : PlacementPolicy::Spread;
  return {};
}

Status read_node_policy(const json::Value& pod, Affinity& affinity) {
  constexpr std::string_view kKey = "hami.io/node-scheduler-policy";
  GANTRY_TRY(const auto text, annotation(pod, kKey));
  if (text.empty()) return {};
  if (text != "binpack" && text != "spread") return wrong(kKey, text, "binpack or spread");
  return merge(affinity.nodes, text == "binpack" ? PlacementPolicy::Pack : PlacementPolicy::Spread,
               kKey, kNodes);
}

Status read_gpu_policy(const json::Value& pod, Affinity& affinity) {
  constexpr std::string_view kKey = "hami.io/gpu-scheduler-policy";
  GANTRY_TRY(const auto policies, list(pod, kKey));
  for (const auto& policy : policies) {
    if (policy == "binpack") {
      GANTRY_CHECK(merge(affinity.gpus, PlacementPolicy::Pack, kKey, kGpusOrder));
    } else if (policy == "spread") {
      GANTRY_CHECK(merge(affinity.gpus, PlacementPolicy::Spread, kKey, kGpusOrder));
    } else if (policy == "topology-aware") {
      GANTRY_CHECK(merge(affinity.topology, TopologyPolicy::Links, kKey));
    } else if (policy == "numa") {
      GANTRY_CHECK(merge(affinity.topology, TopologyPolicy::Numa, kKey));
    } else if (policy == "mutex") {
      return wrong(kKey, policy,
                   fmt::format("{}: 100 for a GPU without other pods", kHamiGpuCores));
    } else {
      return wrong(kKey, policy, "binpack, spread, topology-aware or numa");
    }
  }
  return {};
}

Status read_near(const json::Value& pod, Affinity& affinity) {
  GANTRY_TRY(const auto topology, annotation(pod, kNear));
  if (topology == "numa") {
    affinity.topology = TopologyPolicy::Numa;
  } else if (topology == "links") {
    affinity.topology = TopologyPolicy::Links;
  } else if (!topology.empty()) {
    return wrong(kNear, topology, "numa or links");
  }
  GANTRY_TRY(const auto bind, annotation(pod, "nvidia.com/numa-bind"));
  if (bind == "true") return merge(affinity.topology, TopologyPolicy::Numa, "nvidia.com/numa-bind");
  if (bind.empty() || bind == "false") return {};
  return wrong("nvidia.com/numa-bind", bind, "\"true\" or \"false\"");
}

Status read_mode(const json::Value& pod) {
  constexpr std::string_view kKey = "nvidia.com/vgpu-mode";
  GANTRY_TRY(const auto mode, annotation(pod, kKey));
  if (mode.empty() || mode == "hami-core") return {};
  if (mode == "mig")
    return wrong(kKey, mode, "hami-core; MIG devices are asked for as nvidia.com/mig-PROFILE: 1");
  return wrong(kKey, mode, "hami-core, or leave it out");
}

// If every wanted name is also excluded, no GPU can match.
Status check_lists(const std::vector<std::string>& wanted, const std::vector<std::string>& refused,
                   std::string_view key, std::string_view other) {
  const auto is_refused = [&](const std::string& name) {
    return std::any_of(refused.begin(), refused.end(),
                       [&](const std::string& no) { return to_lower(no) == to_lower(name); });
  };
  if (wanted.empty() || !std::all_of(wanted.begin(), wanted.end(), is_refused)) return {};
  return Error(Errc::Invalid,
               fmt::format("annotation {} excludes everything that {} allows", other, key))
      .advise("keep one of them");
}

}  // namespace

Result<std::string> annotation(const json::Value& pod, std::string_view key) {
  const auto value = pod["metadata"]["annotations"][key];
  if (!value || value.is(json::Kind::Null)) return std::string();
  const auto text = value.string();
  if (!text)
    return Error(Errc::Invalid, fmt::format("annotation {} is {}, not a string", key,
                                            json::to_string(value.kind())))
        .advise("write it in quotes");
  return std::string(trim(*text));
}

std::vector<std::string> known_annotations() {
  std::vector<std::string> names;
  for (const auto name : {kCompute, kGpus, kNear, kNodes, kGpusOrder, kPriority})
    names.emplace_back(name);
  return names;
}

Result<Affinity> parse_affinity(const json::Value& pod) {
  Affinity affinity;
  GANTRY_TRY(affinity.types, list(pod, "nvidia.com/use-gputype"));
  GANTRY_TRY(affinity.excluded_types, list(pod, "nvidia.com/nouse-gputype"));
  GANTRY_TRY(const auto uuids, list(pod, "nvidia.com/use-gpuuuid"));
  GANTRY_TRY(const auto excluded_uuids, list(pod, "nvidia.com/nouse-gpuuuid"));
  GANTRY_CHECK(check_lists(affinity.types, affinity.excluded_types, "nvidia.com/use-gputype",
                           "nvidia.com/nouse-gputype"));
  GANTRY_CHECK(
      check_lists(uuids, excluded_uuids, "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"));
  affinity.uuids = model::to_uuids(uuids);
  affinity.excluded_uuids = model::to_uuids(excluded_uuids);
  GANTRY_CHECK(read_order(pod, kNodes, affinity.nodes));
  GANTRY_CHECK(read_order(pod, kGpusOrder, affinity.gpus));
  GANTRY_CHECK(read_near(pod, affinity));
  GANTRY_CHECK(read_node_policy(pod, affinity));
  GANTRY_CHECK(read_gpu_policy(pod, affinity));
  GANTRY_CHECK(read_mode(pod));
  return affinity;
}

Result<std::string> parse_share_priority(const json::Value& pod) {
  GANTRY_TRY(auto text, annotation(pod, kPriority));
  if (text.empty() || text == "low" || text == "normal" || text == "high") return text;
  return wrong(kPriority, text, "low, normal or high");
}

Result<std::optional<std::uint64_t>> number_annotation(const json::Value& pod, std::string_view key,
                                                       std::string_view container,
                                                       std::uint64_t most) {
  auto name = fmt::format("{}.{}", key, container);
  GANTRY_TRY(auto text, annotation(pod, name));
  if (text.empty()) {
    name = key;
    GANTRY_TRY(text, annotation(pod, key));
  }
  if (text.empty()) return std::optional<std::uint64_t>();
  const auto number = parse_u64(text);
  if (!number || *number == 0 || *number > most)
    return wrong(name, text, fmt::format("a whole number from 1 to {}, in quotes", most));
  return number;
}

}  // namespace gantry::podspec
