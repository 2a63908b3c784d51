// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "cluster/report/columns.hpp"
#include "cluster/report/report.hpp"
#include "cluster/report/report_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::report {
namespace {

constexpr std::uint64_t kCells = 30;
constexpr std::size_t kNamed = 6;  // pods of a GPU that are named
constexpr std::array<int, 6> kPalette{36, 33, 35, 32, 34, 31};

std::string painted(std::string_view text, std::size_t which, ColorMode paint) {
  if (paint == ColorMode::Plain) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kPalette[which % kPalette.size()], text);
}

char letter(std::size_t which) {
  return static_cast<char>('a' + which % 26);
}

// The end of a bar of kCells cells that stands for `mib` of the card.
std::uint64_t end_of(std::uint64_t mib, const placement::CardView& card) {
  const auto total = std::max<std::uint64_t>(card.facts.mib, 1);
  return (std::min(mib, total) * kCells + total / 2) / total;
}

std::string bar(const placement::CardView& card, const std::vector<placement::Tenant>& tenants,
                ColorMode paint) {
  std::string text;
  std::uint64_t before = 0, mib = 0;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    mib += tenants[i].mib;
    const auto end = std::max(before, end_of(mib, card));
    std::string piece;
    for (; before < end; ++before)
      piece += paint == ColorMode::Plain ? std::string(1, letter(i)) : "\u2588";
    if (!piece.empty()) text += painted(piece, i, paint);
  }
  for (; before < kCells; ++before) text += paint == ColorMode::Plain ? "." : "\u2591";
  return text;
}

std::string who(const std::vector<placement::Tenant>& tenants, const Unit& unit, ColorMode paint) {
  std::string text;
  for (std::size_t i = 0; i < tenants.size() && i < kNamed; ++i) {
    const auto& tenant = tenants[i];
    const auto mark = paint == ColorMode::Plain ? fmt::format("{}: ", letter(i)) : "";
    auto name = fmt::format("{}{} {}", mark, printable(to_string(tenant.pod)),
                            amount_in(tenant.mib, unit.mib));
    if (tenant.cores != 0) name += fmt::format(" {}%", tenant.cores);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", painted(name, i, paint));
  }
  if (tenants.size() > kNamed) text += fmt::format(", and {} more", tenants.size() - kNamed);
  return text;
}

std::string card_line(const placement::CardView& card, const Unit& unit, ColorMode paint) {
  const auto tenants = by_name(card.tenants);
  auto line = fmt::format("  GPU{:<2} {} {:>9} {}  ", card.facts.index, bar(card, tenants, paint),
                          fmt::format("{}/{}", used_in(card, unit.mib), total_in(card, unit.mib)),
                          unit.label);
  line +=
      card.facts.usable() ? who(tenants, unit, paint) : "unhealthy " + who(tenants, unit, paint);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string common_model(const placement::NodeView& node) {
  const auto& model = node.cards.front().facts.model;
  const bool common =
      std::all_of(node.cards.begin(), node.cards.end(),
                  [&](const placement::CardView& card) { return card.facts.model == model; });
  return common ? model : "";
}

std::string head_of(const placement::NodeView& node, const Unit& unit) {
  const auto sum = sum_usage(node, unit.mib);
  auto text = fmt::format("{}  {}  {} of {} {} ({}%)", printable(node.facts.name), address_of(node),
                          sum.used, sum.total, unit.label, sum.percent());
  const auto model = common_model(node);
  if (!model.empty()) text += "  " + printable(model);
  return text + "\n";
}

}  // namespace

std::string bars(Views views, ColorMode paint) {
  const auto unit = unit_of(views);
  std::string text;
  UsageSum all;
  for (const auto& node : views) {
    if (node.cards.empty()) continue;
    text += head_of(node, unit);
    for (const auto& card : node.cards) text += card_line(card, unit, paint);
    for (const auto& tenant : by_name(node.unplaced))
      text += fmt::format("  no GPU yet: {} {}\n", printable(to_string(tenant.pod)),
                          amount_in(tenant.mib, unit.mib));
    add(all, sum_usage(node, unit.mib));
  }
  return text +
         fmt::format("Total: {} of {} {} ({}%)\n", all.used, all.total, unit.label, all.percent());
}

}  // namespace gantry::report
