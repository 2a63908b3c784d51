// SPDX-License-Identifier: Apache-2.0
#include "cluster/report/report.hpp"

#include <algorithm>
#include <tuple>

namespace gantry::report {

Unit unit_of(Views views) {
  std::uint64_t common = 0;
  for (const auto& node : views) {
    if (node.cards.empty()) continue;
    if (common == 0) common = node.facts.unit_mib;
    if (common != node.facts.unit_mib) common = 1;
  }
  if (common == 1) return {.mib = 1, .label = "MiB"};
  return {};
}

std::uint64_t amount_in(std::uint64_t mib, std::uint64_t unit_mib) {
  return unit_mib == 0 ? mib : mib / unit_mib + (mib % unit_mib == 0 ? 0 : 1);
}

std::uint64_t total_in(const placement::CardView& card, std::uint64_t unit_mib) {
  return unit_mib == 0 ? card.facts.mib : card.facts.mib / unit_mib;
}

std::uint64_t held_mib(const placement::CardView& card) {
  std::uint64_t sum = 0;
  for (const auto& tenant : card.tenants) sum += tenant.mib;
  return sum;
}

std::uint64_t held_cores(const placement::CardView& card) {
  std::uint64_t sum = 0;
  for (const auto& tenant : card.tenants) sum += tenant.cores;
  return sum;
}

std::uint64_t used_in(const placement::CardView& card, std::uint64_t unit_mib) {
  const auto held = held_mib(card);
  const auto used = amount_in(held, unit_mib);
  // 143771 of 143771 MiB are 140 of 140 GiB.
  if (held <= card.facts.mib) return std::min(used, total_in(card, unit_mib));
  return used;
}

int UsageSum::percent() const {
  return total == 0 ? 0 : static_cast<int>(used * 100 / total);
}

UsageSum sum_usage(const placement::NodeView& node, std::uint64_t unit_mib) {
  UsageSum sum;
  for (const auto& card : node.cards) {
    sum.used += used_in(card, unit_mib);
    sum.total += total_in(card, unit_mib);
  }
  for (const auto& tenant : node.unplaced) sum.used += amount_in(tenant.mib, unit_mib);
  return sum;
}

std::vector<placement::Tenant> by_name(std::vector<placement::Tenant> tenants) {
  std::sort(tenants.begin(), tenants.end(),
            [](const placement::Tenant& a, const placement::Tenant& b) {
              return std::tie(a.pod.name_space, a.pod.name, a.pod.uid) <
                     std::tie(b.pod.name_space, b.pod.name, b.pod.uid);
            });
  return tenants;
}

}  // namespace gantry::report
