// SPDX-License-Identifier: Apache-2.0
// The lines of the log:
// {"step":"reserve","name":"node-1","ask":{...},"placement":{...}}
#include "base/json/document.hpp"
#include "support/simulated_cluster/decision_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace gantry::placement {
namespace {

using json::quote;

constexpr std::array<std::string_view, 8> kKinds{"start", "node",  "node-gone", "pod",
                                                 "gone",  "quota", "reserve",   "release"};
constexpr std::array<std::string_view, 3> kAmounts{"units", "mib", "percent"};
constexpr std::array<std::string_view, 3> kPhases{"init", "sidecar", "main"};
constexpr std::array<std::string_view, 3> kNear{"any", "numa", "links"};
constexpr std::array<std::string_view, 2> kOrders{"pack", "spread"};
constexpr std::array<std::string_view, 2> kContracts{"gpushare", "hami"};

Error corrupt(std::string_view what) {
  return {Errc::Corrupt, fmt::format("log of decisions: {}", what)};
}

template <class Enum, std::size_t N>
std::string_view word(Enum value, const std::array<std::string_view, N>& words) {
  return words[static_cast<std::size_t>(value)];
}

template <class Enum, std::size_t N>
Result<Enum> from_word(const json::Value& value, const std::array<std::string_view, N>& words) {
  const auto text = value.string();
  const auto found = text ? std::find(words.begin(), words.end(), *text) : words.end();
  if (found == words.end())
    return corrupt(fmt::format("{} is not a {}", value.raw(), words.front()));
  return static_cast<Enum>(found - words.begin());
}

template <class Number>
Result<Number> number(const json::Value& value) {
  const auto read = value.u64();
  if (!read || *read > std::numeric_limits<Number>::max())
    return corrupt(fmt::format("{} is not a number", value ? value.raw() : "nothing"));
  return static_cast<Number>(*read);
}

std::string list_text(const std::vector<std::string>& list) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : ",") + quote(one);
  return "[" + text + "]";
}

std::string to_json(const podspec::ContainerRequest& asked) {
  return fmt::format(
      R"({{"name":{},"phase":"{}","gpus":{},"memory":{},"of":"{}","cores":{},"resource":{}}})",
      quote(asked.container), word(asked.phase, kPhases), asked.gpus, asked.memory.value,
      word(asked.memory.kind, kAmounts), asked.cores, quote(asked.resource));
}

std::string to_json(const podspec::Affinity& affinity) {
  auto text = fmt::format(R"({{"near":"{}")", word(affinity.topology, kNear));
  const auto list = [&](std::string_view key, const std::vector<std::string>& words) {
    if (!words.empty()) text += fmt::format(R"(,"{}":{})", key, list_text(words));
  };
  list("types", affinity.types);
  list("not-types", affinity.excluded_types);
  list("uuids", affinity.uuids);
  list("not-uuids", affinity.excluded_uuids);
  if (affinity.nodes) text += fmt::format(R"(,"nodes":"{}")", word(*affinity.nodes, kOrders));
  if (affinity.gpus) text += fmt::format(R"(,"gpus":"{}")", word(*affinity.gpus, kOrders));
  return text + "}";
}

std::string to_json(const podspec::PodRequest& ask) {
  std::string containers;
  for (const auto& asked : ask.containers)
    containers += (containers.empty() ? "" : ",") + to_json(asked);
  return fmt::format(
      R"({{"uid":{},"namespace":{},"name":{},"priority":{},"contract":"{}","containers":[{}],)"
      R"("wishes":{},"share":{},"inits":{},"mains":{}}})",
      quote(ask.pod.uid), quote(ask.pod.name_space), quote(ask.pod.name), ask.priority,
      word(ask.contract, kContracts), containers, to_json(ask.affinity), quote(ask.share_priority),
      ask.init_containers, ask.main_containers);
}

Result<podspec::ContainerRequest> parse_container(const json::Value& value) {
  podspec::ContainerRequest asked;
  asked.container = value["name"].string().value_or("");
  asked.resource = value["resource"].string().value_or("");
  GANTRY_TRY(asked.phase, from_word<podspec::Phase>(value["phase"], kPhases));
  GANTRY_TRY(asked.memory.kind, from_word<podspec::Amount::Kind>(value["of"], kAmounts));
  GANTRY_TRY(asked.memory.value, number<std::uint64_t>(value["memory"]));
  GANTRY_TRY(asked.gpus, number<std::uint32_t>(value["gpus"]));
  GANTRY_TRY(asked.cores, number<std::uint32_t>(value["cores"]));
  return asked;
}

Result<podspec::Affinity> parse_affinity(const json::Value& value) {
  podspec::Affinity affinity{.types = value["types"].strings(),
                             .excluded_types = value["not-types"].strings(),
                             .uuids = value["uuids"].strings(),
                             .excluded_uuids = value["not-uuids"].strings()};
  GANTRY_TRY(affinity.topology, from_word<podspec::TopologyPolicy>(value["near"], kNear));
  if (value["nodes"]) {
    GANTRY_TRY(affinity.nodes, from_word<podspec::PlacementPolicy>(value["nodes"], kOrders));
  }
  if (value["gpus"]) {
    GANTRY_TRY(affinity.gpus, from_word<podspec::PlacementPolicy>(value["gpus"], kOrders));
  }
  return affinity;
}

Result<podspec::PodRequest> parse_request(const json::Value& value) {
  podspec::PodRequest ask;
  ask.pod.uid = value["uid"].string().value_or("");
  ask.pod.name_space = value["namespace"].string().value_or("");
  ask.pod.name = value["name"].string().value_or("");
  ask.share_priority = value["share"].string().value_or("");
  ask.priority = static_cast<std::int32_t>(value["priority"].i64().value_or(0));
  GANTRY_TRY(ask.contract, from_word<podspec::Contract>(value["contract"], kContracts));
  GANTRY_TRY(ask.init_containers, number<std::uint32_t>(value["inits"]));
  GANTRY_TRY(ask.main_containers, number<std::uint32_t>(value["mains"]));
  GANTRY_TRY(ask.affinity, parse_affinity(value["wishes"]));
  for (const auto one : value["containers"]) {
    GANTRY_TRY(auto asked, parse_container(one));
    ask.containers.push_back(std::move(asked));
  }
  return ask;
}

// In the form of a Node object, which podspec::parse_node reads.
Result<podspec::NodeInfo> parse_node(const json::Value& value) {
  GANTRY_TRY(const auto object,
             json::Document::parse(fmt::format(
                 R"({{"metadata":{{"name":{},"annotations":{{"{}":{}}}}}}})",
                 quote(value["name"].string().value_or("")), podspec::kSharedGpusAnnotation,
                 quote(value["facts"].string().value_or("")))));
  GANTRY_TRY(auto facts, podspec::parse_node(object.root()));
  facts.address = value["address"].string().value_or("");
  facts.ready = value["ready"].boolean().value_or(true);
  GANTRY_TRY(facts.whole_gpus, number<std::uint32_t>(value["whole"]));
  return facts;
}

}  // namespace

std::string to_string(const LogEntry& step) {
  auto text = fmt::format(R"({{"step":"{}")", word(step.kind, kKinds));
  const auto& name = step.kind == LogEntry::Kind::Node ? step.facts.name : step.name;
  if (!name.empty()) text += fmt::format(R"(,"name":{})", quote(name));
  if (step.kind == LogEntry::Kind::Node)
    text += fmt::format(R"(,"facts":{},"address":{},"whole":{},"ready":{})",
                        quote(podspec::to_json(step.facts)), quote(step.facts.address),
                        step.facts.whole_gpus, step.facts.ready);
  if (step.kind == LogEntry::Kind::Pod || step.kind == LogEntry::Kind::Reserve)
    text += fmt::format(R"(,"ask":{})", to_json(step.ask));
  if (step.placement) text += fmt::format(R"(,"placement":{})", podspec::to_json(*step.placement));
  if (step.kind == LogEntry::Kind::Quota)
    text += fmt::format(R"(,"mib":{},"cores":{})", step.quota.mib, step.quota.cores);
  return text + "}";
}

Result<LogEntry> parse_log_entry(std::string_view line) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(line)));
  const auto root = document.root();
  LogEntry step;
  GANTRY_TRY(step.kind, from_word<LogEntry::Kind>(root["step"], kKinds));
  step.name = root["name"].string().value_or("");
  if (step.kind == LogEntry::Kind::Node) {
    GANTRY_TRY(step.facts, parse_node(root));
    step.name.clear();
  }
  if (step.kind == LogEntry::Kind::Pod || step.kind == LogEntry::Kind::Reserve) {
    GANTRY_TRY(step.ask, parse_request(root["ask"]));
  }
  if (root["placement"]) {
    GANTRY_TRY(step.placement, podspec::parse_placement(root["placement"].raw()));
  }
  if (step.kind == LogEntry::Kind::Quota) {
    GANTRY_TRY(step.quota.mib, number<std::uint64_t>(root["mib"]));
    GANTRY_TRY(step.quota.cores, number<std::uint64_t>(root["cores"]));
  }
  return step;
}

}  // namespace gantry::placement
