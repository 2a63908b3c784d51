// SPDX-License-Identifier: Apache-2.0
// The lines of the log:
// {"step":"reserve","name":"node-1","ask":{...},"placement":{...}}
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "gpu/model/enum_names.hpp"
#include "support/simulated_cluster/decision_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace gantry::placement {
namespace {

constexpr std::array<std::string_view, 8> kKinds{"start", "node",  "node-gone", "pod",
                                                 "gone",  "quota", "reserve",   "release"};
constexpr std::array<std::string_view, 3> kAmounts{"units", "mib", "percent"};
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

void write_container(json::Writer& out, const podspec::ContainerRequest& asked) {
  out.object([&] {
    out.member("name", asked.container);
    out.member("phase", to_string(asked.phase));
    out.member("gpus", asked.gpus);
    out.member("memory", asked.memory.value);
    out.member("of", word(asked.memory.kind, kAmounts));
    out.member("cores", asked.cores);
    out.member("resource", asked.resource);
  });
}

void write_affinity(json::Writer& out, const podspec::Affinity& affinity) {
  const auto list = [&](std::string_view key, const std::vector<std::string>& words) {
    if (!words.empty()) out.array(key, words);
  };
  out.object("wishes", [&] {
    out.member("near", word(affinity.topology, kNear));
    list("types", affinity.types);
    list("not-types", affinity.excluded_types);
    list("uuids", model::to_texts(affinity.uuids));
    list("not-uuids", model::to_texts(affinity.excluded_uuids));
    if (affinity.nodes) out.member("nodes", word(*affinity.nodes, kOrders));
    if (affinity.gpus) out.member("gpus", word(*affinity.gpus, kOrders));
  });
}

void write_request(json::Writer& out, const podspec::PodRequest& ask) {
  out.object("ask", [&] {
    out.member("uid", ask.pod.uid);
    out.member("namespace", ask.pod.name_space);
    out.member("name", ask.pod.name);
    out.member("priority", ask.priority);
    out.member("contract", word(ask.contract, kContracts));
    out.array("containers", ask.containers,
              [&](const auto& asked) { write_container(out, asked); });
    write_affinity(out, ask.affinity);
    out.member("share", ask.share_priority);
    out.member("inits", ask.init_containers);
    out.member("mains", ask.main_containers);
  });
}

Result<podspec::ContainerRequest> parse_container(const json::Value& value) {
  podspec::ContainerRequest asked;
  asked.container = value["name"].string().value_or("");
  asked.resource = value["resource"].string().value_or("");
  GANTRY_TRY(asked.phase, from_word<model::ContainerPhase>(
                              value["phase"], model::kEnumNames<model::ContainerPhase>));
  GANTRY_TRY(asked.memory.kind, from_word<podspec::Amount::Kind>(value["of"], kAmounts));
  GANTRY_TRY(asked.memory.value, number<std::uint64_t>(value["memory"]));
  GANTRY_TRY(asked.gpus, number<std::uint32_t>(value["gpus"]));
  GANTRY_TRY(asked.cores, number<std::uint32_t>(value["cores"]));
  return asked;
}

Result<podspec::Affinity> parse_affinity(const json::Value& value) {
  podspec::Affinity affinity{.types = value["types"].strings(),
                             .excluded_types = value["not-types"].strings(),
                             .uuids = model::to_uuids(value["uuids"].strings()),
                             .excluded_uuids = model::to_uuids(value["not-uuids"].strings())};
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
  json::Writer out;
  out.object([&] {
    out.object("metadata", [&] {
      out.member("name", value["name"].string().value_or(""));
      out.object("annotations", [&] {
        out.member(podspec::kSharedGpusAnnotation, value["facts"].string().value_or(""));
      });
    });
  });
  GANTRY_TRY(const auto object, json::Document::parse(out.text()));
  GANTRY_TRY(auto facts, podspec::parse_node(object.root()));
  facts.address = value["address"].string().value_or("");
  facts.ready = value["ready"].boolean().value_or(true);
  GANTRY_TRY(facts.whole_gpus, number<std::uint32_t>(value["whole"]));
  return facts;
}

}  // namespace

std::string to_string(const LogEntry& step) {
  using Kind = LogEntry::Kind;
  const auto& name = step.kind == Kind::Node ? step.facts.name : step.name;
  json::Writer out;
  out.object([&] {
    out.member("step", word(step.kind, kKinds));
    if (!name.empty()) out.member("name", name);
    if (step.kind == Kind::Node) {
      out.member("facts", podspec::to_json(step.facts));
      out.member("address", step.facts.address);
      out.member("whole", step.facts.whole_gpus);
      out.member("ready", step.facts.ready);
    }
    if (step.kind == Kind::Pod || step.kind == Kind::Reserve) write_request(out, step.ask);
    if (step.placement) out.raw_member("placement", podspec::to_json(*step.placement));
    if (step.kind == Kind::Quota) {
      out.member("mib", step.quota.mib);
      out.member("cores", step.quota.cores);
    }
  });
  return std::move(out).text();
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
