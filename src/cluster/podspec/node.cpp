// SPDX-License-Identifier: Apache-2.0
// The annotation's text:
// {"unit":1024,"whole":0,"gpus":[{"uuid":"GPU-1a","index":0,"mib":143360,"slots":32,
//  "model":"NVIDIA H200","numa":0,"healthy":true,"links":[0,18]}]}
#include "cluster/podspec/node.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "cluster/podspec/limits_internal.hpp"
#include "cluster/podspec/quantity.hpp"
#include "cluster/podspec/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::podspec {
namespace {

constexpr std::uint64_t kMaxSlotsPerCard = 65536;
constexpr std::uint32_t kSlotsOfOthers = 1024;  // gpushare has no such limit
constexpr std::uint64_t kMaxGibPerCard = 1000;  // a card has fewer GiB and more MiB than this

Error corrupt_node(std::string_view what) {
  return {Errc::Corrupt, fmt::format("{}: {}", kSharedGpusAnnotation, what)};
}

Result<std::uint64_t> number_or(const json::Value& object, std::string_view key, std::uint64_t most,
                                std::uint64_t otherwise) {
  if (!object[key]) return otherwise;
  const auto value = object[key].u64();
  if (!value || *value > most)
    return corrupt_node(fmt::format("{} is not a number up to {}", key, most));
  return *value;
}

std::int32_t clamped(const json::Value& value, std::int32_t otherwise) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(value.i64().value_or(otherwise), -1, 1'000'000));
}

Result<CardInfo> card_from(const json::Value& value, std::size_t cards) {
  CardInfo card;
  card.uuid.text = value["uuid"].string().value_or("");
  if (card.uuid.text.empty() || card.uuid.text.size() > kMaxNameBytes)
    return corrupt_node("a GPU without a UUID");
  GANTRY_TRY(const auto index, number_or(value, "index", kMaxGpusPerContainer, 0));
  GANTRY_TRY(card.mib, number_or(value, "mib", kMaxMemoryMib, 0));
  GANTRY_TRY(const auto slots, number_or(value, "slots", kMaxSlotsPerCard, card.slots));
  card.index = static_cast<std::uint32_t>(index);
  card.slots = static_cast<std::uint32_t>(slots);
  card.model = value["model"].string().value_or("").substr(0, kMaxNameBytes);
  card.numa = clamped(value["numa"], -1);
  card.healthy = value["healthy"].boolean().value_or(true);
  const auto links = value["links"];
  if (links.size() != 0 && (!links.is(json::Kind::Array) || links.size() != cards))
    return corrupt_node(
        fmt::format("{} does not have one link for each GPU", printable(card.uuid.text)));
  for (const auto link : links) card.links.push_back(clamped(link, 0));
  return card;
}

// Sorts by index; the links are reordered too.
void sort_cards(std::vector<CardInfo>& cards) {
  std::vector<std::size_t> order(cards.size());
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return cards[one].index < cards[other].index;
  });
  std::vector<CardInfo> sorted;
  for (const auto from : order) {
    auto card = cards[from];
    if (!card.links.empty()) {
      for (std::size_t at = 0; at < order.size(); ++at)
        card.links[at] = cards[from].links[order[at]];
    }
    sorted.push_back(std::move(card));
  }
  cards = std::move(sorted);
}

Status read_annotation(const std::string& text, std::uint64_t allocatable, NodeInfo& facts) {
  if (text.size() > kMaxAnnotationBytes)
    return corrupt_node(fmt::format("more than {} bytes", kMaxAnnotationBytes));
  GANTRY_TRY(const auto document, json::Document::parse(text).in(kSharedGpusAnnotation));
  const auto gpus = document["gpus"];
  if (!gpus.is(json::Kind::Array) || gpus.size() > kMaxGpusPerContainer)
    return corrupt_node("the list of GPUs is missing");
  GANTRY_TRY(facts.unit_mib, number_or(document.root(), "unit", 1024, 1024));
  if (facts.unit_mib != 1 && facts.unit_mib != 1024)
    return corrupt_node("unit is neither 1 nor 1024");
  GANTRY_TRY(const auto whole, number_or(document.root(), "whole", kMaxGpusPerContainer, 0));
  facts.whole_gpus = static_cast<std::uint32_t>(std::min(whole, allocatable));
  std::set<model::GpuUuid> uuids;
  std::set<std::uint32_t> indices;
  for (const auto gpu : gpus) {
    GANTRY_TRY(auto card, card_from(gpu, gpus.size()));
    if (!uuids.insert(card.uuid).second || !indices.insert(card.index).second)
      return corrupt_node(fmt::format("GPU {} is listed twice", printable(card.uuid.text)));
    facts.cards.push_back(std::move(card));
  }
  sort_cards(facts.cards);
  return {};
}

std::uint64_t resource(const json::Value& list, std::string_view name) {
  auto quantity = list[name] ? read_quantity(list[name]) : Result<Quantity>(Quantity{});
  return quantity.ok() ? quantity->value : 0;
}

// A node with gpushare's own device plugin, which reports only the sum.
Status read_gpushare(const json::Value& status, NodeInfo& facts) {
  const auto units = resource(status["capacity"], kAliyunGpuMem);
  const auto count = resource(status["capacity"], kAliyunGpuCount);
  if (units == 0 || count == 0) return {};
  if (count > kMaxGpusPerContainer || units > kMaxMemoryMib)
    return Error(Errc::Corrupt, fmt::format("node {}: {}: {} on {} GPUs is not possible",
                                            facts.name, kAliyunGpuMem, units, count));
  const auto each = units / count;
  facts.unit_mib = each > kMaxGibPerCard ? 1 : 1024;
  const bool healthy = resource(status["allocatable"], kAliyunGpuMem) > 0;
  for (std::uint32_t index = 0; index < count; ++index) {
    CardInfo card;
    card.uuid.text = fmt::format("{}/{}", facts.name, index);
    card.index = index;
    card.mib = each * facts.unit_mib;
    card.slots = kSlotsOfOthers;
    card.healthy = healthy;
    facts.cards.push_back(std::move(card));
  }
  return {};
}

std::string internal_address(const json::Value& status) {
  for (const auto address : status["addresses"]) {
    if (address["type"].string() == "InternalIP") return address["address"].string().value_or("");
  }
  return "";
}

bool is_ready(const json::Value& status) {
  for (const auto condition : status["conditions"]) {
    if (condition["type"].string() == "Ready") return condition["status"].string() == "True";
  }
  return true;
}

void cordon(const std::string& names, std::vector<CardInfo>& cards) {
  std::set<std::string_view> cordoned;
  for (const auto name : split(names, ',')) cordoned.insert(trim(name));
  for (auto& card : cards) {
    if (cordoned.count(card.uuid.text) != 0) card.healthy = false;
  }
}

}  // namespace

std::string to_json(const NodeInfo& facts) {
  json::Writer out;
  const auto write_card = [&](const CardInfo& card) {
    out.object([&] {
      out.member("uuid", card.uuid.text);
      out.member("index", card.index);
      out.member("mib", card.mib);
      out.member("slots", card.slots);
      out.member("model", card.model);
      out.member("numa", card.numa);
      out.member("healthy", card.healthy);
      if (!card.links.empty()) out.array("links", card.links);
    });
  };
  out.object([&] {
    out.member("unit", facts.unit_mib);
    out.member("whole", facts.whole_gpus);
    out.array("gpus", facts.cards, write_card);
  });
  return std::move(out).text();
}

Result<NodeInfo> parse_node(const json::Value& node) {
  NodeInfo facts;
  facts.name = node["metadata"]["name"].string().value_or("");
  if (facts.name.empty()) return Error(Errc::Invalid, "the node has no name");
  const auto status = node["status"];
  facts.address = internal_address(status);
  facts.ready = is_ready(status);
  const auto gpus = std::min(resource(status["allocatable"], kNvidiaGpu), kMaxGpusPerContainer);
  const auto notes = node["metadata"]["annotations"];
  const auto text = notes[kSharedGpusAnnotation].string();
  if (text) {
    GANTRY_CHECK(read_annotation(*text, gpus, facts).in(fmt::format("node {}", facts.name)));
  } else {
    facts.whole_gpus = static_cast<std::uint32_t>(gpus);
    GANTRY_CHECK(read_gpushare(status, facts));
  }
  cordon(notes[kCordonAnnotation].string().value_or(""), facts.cards);
  return facts;
}

}  // namespace gantry::podspec
