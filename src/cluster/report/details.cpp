// SPDX-License-Identifier: Apache-2.0
// kubectl-inspect-gpushare -d: a table for each node, a line for each pod.
#include "base/core/printable.hpp"
#include "cluster/report/columns.hpp"
#include "cluster/report/report.hpp"
#include "cluster/report/report_internal.hpp"

#include <fmt/format.h>

namespace gantry::report {

std::string address_of(const placement::NodeView& node) {
  return node.facts.address.empty() ? "unknown" : printable(node.facts.address);
}

std::uint64_t pending_in(const placement::NodeView& node, std::uint64_t unit_mib) {
  std::uint64_t sum = 0;
  for (const auto& tenant : node.unplaced) sum += amount_in(tenant.mib, unit_mib);
  return sum;
}

void add(UsageSum& sum, const UsageSum& more) {
  sum.used += more.used;
  sum.total += more.total;
}

namespace {

struct Row {
  PodRef pod;
  std::vector<std::uint64_t> amounts;  // by card; one more for pods without a GPU
};

void put(std::vector<Row>& rows, const placement::Tenant& tenant, std::size_t column,
         std::size_t columns, std::uint64_t amount) {
  for (auto& row : rows) {
    if (row.pod.uid != tenant.pod.uid) continue;
    row.amounts[column] += amount;
    return;
  }
  rows.push_back({.pod = tenant.pod, .amounts = std::vector<std::uint64_t>(columns)});
  rows.back().amounts[column] = amount;
}

// Ordered by card, so that pods on one GPU are adjacent in the table.
std::vector<Row> rows_of(const placement::NodeView& node, std::uint64_t unit_mib) {
  std::vector<Row> rows;
  const auto columns = node.cards.size() + (node.unplaced.empty() ? 0 : 1);
  for (std::size_t i = 0; i < node.cards.size(); ++i) {
    for (const auto& tenant : by_name(node.cards[i].tenants))
      put(rows, tenant, i, columns, amount_in(tenant.mib, unit_mib));
  }
  for (const auto& tenant : by_name(node.unplaced))
    put(rows, tenant, node.cards.size(), columns, amount_in(tenant.mib, unit_mib));
  return rows;
}

std::string pod_line(const Row& row) {
  auto line = fmt::format("{}\t{}\t", row.pod.name, row.pod.name_space);
  for (const auto amount : row.amounts) line += fmt::format("{}\t", amount);
  return line + "\n";
}

std::string table(const placement::NodeView& node, std::uint64_t unit_mib, std::size_t& rule) {
  auto text = fmt::format("\nNAME:\t{}\nIPADDRESS:\t{}\n\nNAME\tNAMESPACE\t", node.facts.name,
                          address_of(node));
  for (const auto& card : node.cards) text += fmt::format("GPU{}(Allocated)\t", card.facts.index);
  if (!node.unplaced.empty()) text += "Pending(Allocated)\t";
  text += "\n";
  std::string first;
  for (const auto& row : rows_of(node, unit_mib)) {
    const auto line = pod_line(row);
    if (first.empty()) first = line;
    text += line;
  }
  // gpushare's line is as long as all rows together; the length of one row is enough.
  if (rule == 0) rule = first.size() + 10;
  const auto sum = sum_usage(node, unit_mib);
  text +=
      fmt::format("Allocated :\t{} ({}%)\t\nTotal :\t{} \t\n", sum.used, sum.percent(), sum.total);
  return text + std::string(rule, '-') + "\n";
}

}  // namespace

std::string details(Views views) {
  const auto unit = unit_of(views);
  std::string text;
  UsageSum all;
  std::size_t rule = 0;
  for (const auto& node : views) {
    if (node.cards.empty()) continue;
    text += table(node, unit.mib, rule);
    add(all, sum_usage(node, unit.mib));
  }
  text += fmt::format("\n\nAllocated/Total GPU Memory In Cluster:\t{}/{} ({}%)\t\n", all.used,
                      all.total, all.percent());
  return align_columns(text);
}

}  // namespace gantry::report
