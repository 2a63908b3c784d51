// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "cluster/report/report.hpp"

#include <fmt/format.h>

namespace gantry::report {
namespace {

std::string list_of(const std::vector<placement::Tenant>& tenants, std::uint64_t unit_mib) {
  std::string text;
  for (const auto& tenant : by_name(tenants))
    text += fmt::format("{}{{\"name\":{},\"namespace\":{},\"usedGPU\":{},\"mib\":{},\"cores\":{}}}",
                        text.empty() ? "" : ",", json::quote(tenant.pod.name),
                        json::quote(tenant.pod.name_space), amount_in(tenant.mib, unit_mib),
                        tenant.mib, tenant.cores);
  return "[" + text + "]";
}

std::string device(const placement::CardView& card, std::uint64_t unit_mib) {
  return fmt::format(
      "{{\"id\":{},\"totalGPU\":{},\"usedGPU\":{},\"pods\":{},\"uuid\":{},\"model\":{},"
      "\"healthy\":{},\"totalMiB\":{},\"usedMiB\":{},\"usedCores\":{},\"slots\":{},\"usedSlots\":"
      "{}}}",
      card.facts.index, total_in(card, unit_mib), used_in(card, unit_mib),
      list_of(card.tenants, unit_mib), json::quote(card.facts.uuid.text),
      json::quote(card.facts.model), card.facts.usable(), card.facts.mib, held_mib(card),
      held_cores(card), card.facts.slots, card.used_slots);
}

std::string node_json(const placement::NodeView& node) {
  const auto unit = node.facts.unit_mib;
  std::string devices;
  for (const auto& card : node.cards) devices += (devices.empty() ? "" : ",") + device(card, unit);
  const auto sum = sum_usage(node, unit);
  return fmt::format(
      "{{\"name\":{},\"totalGPU\":{},\"usedGPU\":{},\"devs\":[{}],\"unit\":\"{}\",\"address\":{},"
      "\"pending\":{}}}",
      json::quote(node.facts.name), sum.total, sum.used, devices, unit == 1 ? "MiB" : "GiB",
      json::quote(node.facts.address), list_of(node.unplaced, unit));
}

}  // namespace

std::string to_json(Views views) {
  std::string nodes;
  for (const auto& node : views) {
    if (!node.cards.empty()) nodes += (nodes.empty() ? "" : ",") + node_json(node);
  }
  return "{\"nodes\":[" + nodes + "]}\n";
}

}  // namespace gantry::report
