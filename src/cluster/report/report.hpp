// SPDX-License-Identifier: Apache-2.0
// Who has how much of which GPU, in gpushare's formats and in ours. Pure: views in, text out.
#pragma once

#include "cluster/placement/cluster.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gantry::report {

using Views = std::span<const placement::NodeView>;

// What numbers are in: the unit of the nodes where all have the same one, else MiB.
struct Unit {
  std::uint64_t mib = 1024;
  std::string label = "GiB";
};
Unit unit_of(Views views);

// Whole units. Used amounts are rounded up, so that nothing in use shows as nothing; totals down,
// as they can be asked for.
std::uint64_t total_in(const placement::CardView& card, std::uint64_t unit_mib);
std::uint64_t used_in(const placement::CardView& card, std::uint64_t unit_mib);
std::uint64_t amount_in(std::uint64_t mib, std::uint64_t unit_mib);
// Of the pods that are on this card. CardView::used_mib also keeps room for those whose card is not
// known yet, on every card.
std::uint64_t held_mib(const placement::CardView& card);
std::uint64_t held_cores(const placement::CardView& card);

struct UsageSum {
  std::uint64_t used = 0, total = 0;
  int percent() const;  // as gpushare has it: rounded down
};
UsageSum sum_usage(const placement::NodeView& node,
                   std::uint64_t unit_mib);  // pods without a GPU included

std::string summary(Views views);  // gpushare's table; nodes without shared GPUs are left out
std::string details(Views views);  // gpushare's -d
std::string wide(Views views);     // one line a GPU, exact amounts
std::string to_json(Views views);  // what gpushare's extender answers to GET inspect, units beside

// A bar for each GPU, and who is in it: in colours, or in letters where there are none.
enum class ColorMode : std::uint8_t { Plain, Colors };
std::string bars(Views views, ColorMode paint);

// Tenants in the order in which people look for them.
std::vector<placement::Tenant> by_name(std::vector<placement::Tenant> tenants);

}  // namespace gantry::report
