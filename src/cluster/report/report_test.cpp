// SPDX-License-Identifier: Apache-2.0
#include "cluster/report/report.hpp"

#include "base/json/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::report {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kGiB = 1024;

placement::Tenant tenant(const std::string& name, std::uint64_t mib, std::uint32_t cores = 0) {
  return {.pod = {.uid = "uid-" + name, .name_space = "default", .name = name},
          .mib = mib,
          .cores = cores};
}

placement::CardView card(std::uint32_t index, std::uint64_t mib,
                         std::vector<placement::Tenant> tenants = {}) {
  placement::CardView view{
      .facts = {.uuid = {"GPU-" + std::to_string(index)}, .index = index, .mib = mib}};
  for (const auto& one : tenants) view.used_mib += one.mib;
  view.used_slots = static_cast<std::uint32_t>(tenants.size());
  view.tenants = std::move(tenants);
  return view;
}

placement::NodeView node(const std::string& name, std::vector<placement::CardView> cards) {
  placement::NodeView view{.facts = {.name = name, .address = "10.0.0.11"}};
  for (const auto& one : cards) view.facts.cards.push_back(one.facts);
  view.cards = std::move(cards);
  return view;
}

std::vector<placement::NodeView> one_node() {
  return {node("node-a", {card(0, 15 * kGiB, {tenant("train", 9 * kGiB)}), card(1, 15 * kGiB)})};
}

TEST(InspectSummary, IsGpusharesTable) {
  EXPECT_EQ(summary(one_node()),
            "NAME    IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  GPU Memory(GiB)\n"
            "node-a  10.0.0.11  9/15                   0/15                   9/30\n"
            "----------------------------------------------------\n"
            "Allocated/Total GPU Memory In Cluster:\n"
            "9/30 (30%)  \n");
}

TEST(InspectSummary, APodWithoutAGpuIsInAColumnOfItsOwn) {
  auto views = one_node();
  views.push_back(node("node-b", {card(0, 15 * kGiB)}));
  views[1].facts.address = "";
  views[1].unplaced = {tenant("new", 2 * kGiB)};
  views[1].cards[0].used_mib += 2 * kGiB;  // kept free, not held
  EXPECT_EQ(
      summary(views),
      "NAME    IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  GPU "
      "Memory(GiB)\n"
      "node-a  10.0.0.11  9/15                   0/15                                       9/30\n"
      "node-b  unknown    0/15                   0/0                    2                   2/15\n"
      "-----------------------------------------------------\n"
      "Allocated/Total GPU Memory In Cluster:\n"
      "11/45 (24%)  \n");
}

// Coloured text goes to the terminal as it is, so it must contain no escape sequence but ours.
TEST(InspectBars, NamesAndAddressesCannotCommandTheTerminal) {
  std::vector<placement::NodeView> views{
      node("node\033[2J", {card(0, 15 * kGiB, {tenant("pod\033[2J", 9 * kGiB)})})};
  views[0].facts.address = "10.0.0.1\033[2J";
  views[0].unplaced = {tenant("new\033[2J", 2 * kGiB)};
  const auto text = bars(views, ColorMode::Colors);
  EXPECT_THAT(text, Not(HasSubstr("\033[2J")));
  EXPECT_THAT(text, HasSubstr("node\\x1b[2J  10.0.0.1\\x1b[2J"));
  EXPECT_THAT(summary(views), Not(HasSubstr("\033")));
}

TEST(InspectSummary, NodesWithoutSharedGpusAreNotShown) {
  auto views = one_node();
  views.push_back(node("cpu-only", {}));
  EXPECT_THAT(summary(views), Not(HasSubstr("cpu-only")));
}

TEST(InspectSummary, UnitsThatDifferAreShownInTheSmaller) {
  auto views = one_node();
  views.push_back(node("node-m", {card(0, 16000, {tenant("x", 500)})}));
  views[1].facts.unit_mib = 1;
  EXPECT_THAT(summary(views), HasSubstr("GPU Memory(MiB)"));
  EXPECT_THAT(summary(views), HasSubstr("9216/15360"));
  EXPECT_THAT(summary(views), HasSubstr("500/16000"));
}

TEST(InspectSummary, PartsOfAUnitAreInUseAndAFullCardIsFull) {
  const std::vector<placement::NodeView> views{
      node("a", {card(0, 143771, {tenant("small", 100)}), card(1, 143771, {tenant("all", 143771)}),
                 card(2, 143771, {tenant("more", 143772)})})};
  EXPECT_THAT(summary(views), HasSubstr("1/140 "));
  EXPECT_THAT(summary(views), HasSubstr("140/140 "));
  EXPECT_THAT(summary(views), HasSubstr("141/140 "));
}

TEST(InspectDetails, AreGpusharesTables) {
  auto views = one_node();
  views[0].cards[0] = card(0, 15 * kGiB, {tenant("train", 6 * kGiB), tenant("serve", 3 * kGiB)});
  EXPECT_EQ(details(views),
            "\n"
            "NAME:       node-a\n"
            "IPADDRESS:  10.0.0.11\n"
            "\n"
            "NAME         NAMESPACE  GPU0(Allocated)  GPU1(Allocated)  \n"
            "serve        default    3                0                \n"
            "train        default    6                0                \n"
            "Allocated :  9 (30%)    \n"
            "Total :      30         \n"
            "-----------------------------\n"
            "\n"
            "\n"
            "Allocated/Total GPU Memory In Cluster:  9/30 (30%)  \n");
}

TEST(InspectDetails, APodOnTwoGpusIsOneLineAndOneWithoutAGpuIsPending) {
  auto views = one_node();
  views[0].cards[1] = card(1, 15 * kGiB, {tenant("train", 4 * kGiB)});
  views[0].unplaced = {tenant("new", 2 * kGiB)};
  const auto text = details(views);
  EXPECT_THAT(text, HasSubstr("GPU1(Allocated)  Pending(Allocated)  \n"
                              "train        default    9                4                0  "));
  EXPECT_THAT(text, HasSubstr("new          default    0                0                2  "));
}

TEST(InspectWide, HasExactAmounts) {
  auto views = one_node();
  views[0].cards[0].tenants[0].cores = 30;
  views[0].cards[1].facts.healthy = false;
  views[0].cards[1].facts.model = "NVIDIA\x1b H200";
  views[0].unplaced = {tenant("new", 77)};
  const auto text = wide(views);
  EXPECT_THAT(text,
              HasSubstr("9216/15360   30/100      1/32   yes      default/train=9216Mi:30%\n"));
  EXPECT_THAT(text, HasSubstr("no       -\n"));
  EXPECT_THAT(text, HasSubstr("default/new (no GPU chosen yet)"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(InspectBars, ShowWhoHasHowMuch) {
  auto views = one_node();
  views[0].cards[0] =
      card(0, 15 * kGiB, {tenant("train", 6 * kGiB, 30), tenant("serve", 3 * kGiB)});
  EXPECT_EQ(bars(views, ColorMode::Plain),
            "node-a  10.0.0.11  9 of 30 GiB (30%)\n"
            "  GPU0  aaaaaabbbbbbbbbbbb............      9/15 GiB  a: default/serve 3, b: "
            "default/train 6 30%\n"
            "  GPU1  ..............................      0/15 GiB\n"
            "Total: 9 of 30 GiB (30%)\n");
}

TEST(InspectBars, AreInColorsInATerminalAndNeverLongerThanTheCard) {
  auto views = one_node();
  views[0].cards[0] = card(0, 15 * kGiB, {tenant("a", 14 * kGiB), tenant("b", 9 * kGiB)});
  const auto text = bars(views, ColorMode::Colors);
  EXPECT_THAT(text, HasSubstr("\x1b[36m"));
  EXPECT_THAT(text, HasSubstr("23/15 GiB"));
  std::size_t cells = 0;
  for (auto at = text.find("\u2588"); at != std::string::npos; at = text.find("\u2588", at + 1))
    ++cells;
  EXPECT_EQ(cells, 30U);
}

TEST(InspectBars, OfManyPodsSomeAreNamed) {
  std::vector<placement::Tenant> many;
  for (int i = 0; i < 20; ++i) many.push_back(tenant("p" + std::to_string(i), 100));
  EXPECT_THAT(bars(std::vector{node("a", {card(0, 15 * kGiB, many)})}, ColorMode::Plain),
              HasSubstr(", and 14 more\n"));
}

TEST(InspectJson, IsWhatTheExtenderAnswers) {
  auto views = one_node();
  views.push_back(node("cpu-only", {}));
  const auto read = json::Document::parse(to_json(views));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)["nodes"].size(), 1U);
  const auto first = (*read)["nodes"].element(0);
  EXPECT_EQ(first["name"].string(), "node-a");
  EXPECT_EQ(first["totalGPU"].u64(), 30U);
  EXPECT_EQ(first["usedGPU"].u64(), 9U);
  EXPECT_EQ(first["unit"].string(), "GiB");
  const auto device = first["devs"].element(0);
  EXPECT_EQ(device["id"].u64(), 0U);
  EXPECT_EQ(device["totalGPU"].u64(), 15U);
  EXPECT_EQ(device["pods"].element(0)["name"].string(), "train");
  EXPECT_EQ(device["pods"].element(0)["namespace"].string(), "default");
  EXPECT_EQ(device["pods"].element(0)["usedGPU"].u64(), 9U);
  EXPECT_EQ(first["devs"].element(1)["pods"].size(), 0U);
}

}  // namespace
}  // namespace gantry::report
