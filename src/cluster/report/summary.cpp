// SPDX-License-Identifier: Apache-2.0
// kubectl-inspect-gpushare's first table: a line for each node, a column for each GPU.
#include "base/core/printable.hpp"
#include "cluster/report/columns.hpp"
#include "cluster/report/report.hpp"
#include "cluster/report/report_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::report {
namespace {

std::string header(std::uint32_t columns, bool pending, const Unit& unit) {
  std::string line = "NAME\tIPADDRESS\t";
  for (std::uint32_t i = 0; i < columns; ++i) line += fmt::format("GPU{}(Allocated/Total)\t", i);
  if (pending) line += "PENDING(Allocated)\t";
  return line + fmt::format("GPU Memory({})\n", unit.label);
}

std::string cell(const placement::NodeView& node, std::uint32_t index, const Unit& unit) {
  for (const auto& card : node.cards) {
    if (card.facts.index == index)
      return fmt::format("{}/{}", used_in(card, unit.mib), total_in(card, unit.mib));
  }
  return "0/0";
}

std::string node_row(const placement::NodeView& node, std::uint32_t columns, bool pending,
                     const Unit& unit) {
  auto line = fmt::format("{}\t{}\t", printable(node.facts.name), address_of(node));
  for (std::uint32_t i = 0; i < columns; ++i) line += cell(node, i, unit) + "\t";
  if (pending)
    line += node.unplaced.empty() ? "\t" : fmt::format("{}\t", pending_in(node, unit.mib));
  const auto sum = sum_usage(node, unit.mib);
  return line + fmt::format("{}/{}\n", sum.used, sum.total);
}

}  // namespace

std::string summary(Views views) {
  const auto unit = unit_of(views);
  std::uint32_t columns = 0;
  bool pending = false;
  for (const auto& node : views) {
    for (const auto& card : node.cards)
      columns = std::max(columns, std::min(card.facts.index, kMaxGpuColumns - 1) + 1);
    pending = pending || (!node.cards.empty() && !node.unplaced.empty());
  }
  auto text = header(columns, pending, unit);
  UsageSum all;
  std::size_t rule = 0;
  for (const auto& node : views) {
    if (node.cards.empty()) continue;
    const auto line = node_row(node, columns, pending, unit);
    if (rule == 0) rule = line.size() + 20;
    text += line;
    add(all, sum_usage(node, unit.mib));
  }
  text += std::string(rule, '-') + "\n";
  text += "Allocated/Total GPU Memory In Cluster:\n";
  text += fmt::format("{}/{} ({}%)\t\n", all.used, all.total, all.percent());
  return align_columns(text);
}

}  // namespace gantry::report
