// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.hpp"
#include "cluster/report/report.hpp"

namespace gantry::report {
namespace {

void write_tenants(json::Writer& out, std::string_view name,
                   const std::vector<placement::Tenant>& tenants, std::uint64_t unit_mib) {
  out.array(name, by_name(tenants), [&](const placement::Tenant& tenant) {
    out.object([&] {
      out.member("name", tenant.pod.name);
      out.member("namespace", tenant.pod.name_space);
      out.member("usedGPU", amount_in(tenant.mib, unit_mib));
      out.member("mib", tenant.mib);
      out.member("cores", tenant.cores);
    });
  });
}

void write_card(json::Writer& out, const placement::CardView& card, std::uint64_t unit_mib) {
  out.object([&] {
    out.member("id", card.facts.index);
    out.member("totalGPU", total_in(card, unit_mib));
    out.member("usedGPU", used_in(card, unit_mib));
    write_tenants(out, "pods", card.tenants, unit_mib);
    out.member("uuid", card.facts.uuid.text);
    out.member("model", card.facts.model);
    out.member("healthy", card.facts.usable());
    out.member("totalMiB", card.facts.mib);
    out.member("usedMiB", held_mib(card));
    out.member("usedCores", held_cores(card));
    out.member("slots", card.facts.slots);
    out.member("usedSlots", card.used_slots);
  });
}

void write_node(json::Writer& out, const placement::NodeView& node) {
  const auto unit = node.facts.unit_mib;
  const auto sum = sum_usage(node, unit);
  out.object([&] {
    out.member("name", node.facts.name);
    out.member("totalGPU", sum.total);
    out.member("usedGPU", sum.used);
    out.array("devs", node.cards, [&](const auto& card) { write_card(out, card, unit); });
    out.member("unit", unit == 1 ? "MiB" : "GiB");
    out.member("address", node.facts.address);
    write_tenants(out, "pending", node.unplaced, unit);
  });
}

}  // namespace

std::string to_json(Views views) {
  json::Writer out;
  out.object([&] {
    out.array("nodes", [&] {
      for (const auto& node : views)
        if (!node.cards.empty()) write_node(out, node);
    });
  });
  return out.text() + "\n";
}

}  // namespace gantry::report
