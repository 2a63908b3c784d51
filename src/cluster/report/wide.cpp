// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "cluster/report/columns.hpp"
#include "cluster/report/report.hpp"

#include <fmt/format.h>

namespace gantry::report {
namespace {

std::string pods_of(const placement::CardView& card) {
  std::string text;
  for (const auto& tenant : by_name(card.tenants)) {
    text += fmt::format("{}{}={}Mi", text.empty() ? "" : ",", to_string(tenant.pod), tenant.mib);
    if (tenant.cores != 0) text += fmt::format(":{}%", tenant.cores);
  }
  return text.empty() ? "-" : text;
}

std::string card_row(const placement::NodeView& node, const placement::CardView& card) {
  const auto& facts = card.facts;
  const auto numa = facts.numa < 0 ? "-" : fmt::to_string(facts.numa);
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}/{}\t{}/100\t{}/{}\t{}\t{}\n", node.facts.name,
                     facts.index, printable(facts.uuid.text),
                     facts.model.empty() ? "-" : printable(facts.model), numa, held_mib(card),
                     facts.mib, held_cores(card), card.used_slots, facts.slots,
                     facts.usable() ? "yes" : "no", pods_of(card));
}

}  // namespace

std::string wide(Views views) {
  std::string text =
      "NODE\tGPU\tUUID\tMODEL\tNUMA\tMEMORY(MiB)\tCOMPUTE(%)\tSLOTS\tHEALTHY\tPODS\n";
  for (const auto& node : views) {
    for (const auto& card : node.cards) text += card_row(node, card);
    if (node.cards.empty()) continue;
    for (const auto& tenant : by_name(node.unplaced))
      text += fmt::format("{}\t?\t-\t-\t-\t{}\t{}\t-\t-\t{} (no GPU chosen yet)\n", node.facts.name,
                          tenant.mib, tenant.cores, to_string(tenant.pod));
  }
  return align_columns(text);
}

}  // namespace gantry::report
