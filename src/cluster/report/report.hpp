// SPDX-License-Identifier: Apache-2.0
// Shows which pod has how much of which GPU, in gpushare's formats and in ours. Pure: views in,
// text out.
#pragma once

#include "cluster/placement/cluster.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gantry::report {

using Views = std::span<const placement::NodeView>;

// The unit of the numbers: the unit of the nodes if all have the same, otherwise MiB.
struct Unit {
  std::uint64_t mib = 1024;
  std::string label = "GiB";
};
Unit unit_of(Views views);

// In whole units. Used amounts are rounded up, so that a used amount never shows as 0. Totals are
// rounded down, because a pod cannot ask for more.
std::uint64_t total_in(const placement::CardView& card, std::uint64_t unit_mib);
std::uint64_t used_in(const placement::CardView& card, std::uint64_t unit_mib);
std::uint64_t amount_in(std::uint64_t mib, std::uint64_t unit_mib);
// The memory of the pods on this card. CardView::used_mib also includes, on every card, room for
// pods whose card is not known yet.
std::uint64_t held_mib(const placement::CardView& card);
std::uint64_t held_cores(const placement::CardView& card);

struct UsageSum {
  std::uint64_t used = 0, total = 0;
  int percent() const;  // rounded down, as in gpushare
};
UsageSum sum_usage(const placement::NodeView& node,
                   std::uint64_t unit_mib);  // includes pods without a GPU

std::string summary(Views views);  // gpushare's table; leaves out nodes without shared GPUs
std::string details(Views views);  // gpushare's -d
std::string wide(Views views);     // one line for each GPU, exact amounts
std::string to_json(Views views);  // the answer of gpushare's extender to GET inspect, plus units

// A bar for each GPU with its pods: in colors, or with letters in plain text.
enum class ColorMode : std::uint8_t { Plain, Colors };
std::string bars(Views views, ColorMode paint);

// Tenants sorted by name.
std::vector<placement::Tenant> by_name(std::vector<placement::Tenant> tenants);

}  // namespace gantry::report
