// SPDX-License-Identifier: Apache-2.0
#include "node/agent/shared_node_info.hpp"

#include "container/plan/machine_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

resources::Offer sharing(const model::Inventory& machine, options::MemoryUnit unit) {
  options::Options options;
  options.shares = {.all = true, .unit = unit, .slots = 8};
  auto offer = resources::resources(machine, options);
  EXPECT_TRUE(offer.ok()) << offer.error().text();
  return *std::move(offer);
}

model::Inventory machine() {
  auto machine = plan::machine_for_test();
  machine.gpus[2].mig = {.current = model::MigMode::Disabled};
  for (auto& gpu : machine.gpus) gpu.memory_bytes = std::uint64_t{143'771} << 20U;
  return machine;
}

TEST(SharedFacts, AreThoseOfTheGpusInShares) {
  const auto inventory = machine();
  const auto facts =
      shared_node_info("n", inventory, sharing(inventory, options::MemoryUnit::GiB), {});
  ASSERT_EQ(facts.cards.size(), 3U);
  EXPECT_EQ(facts.cards[1].uuid, inventory.gpus[1].uuid);
  EXPECT_EQ(facts.cards[1].mib, 143'771U);
  EXPECT_EQ(facts.cards[1].slots, 8U);
  EXPECT_EQ(facts.cards[1].links.size(), 3U);
  EXPECT_EQ(facts.whole_gpus, 0U);
}

TEST(SharedFacts, MarkACardThatIsIll) {
  const auto inventory = machine();
  const model::DeviceHealth ill{.gpu = inventory.gpus[1].uuid, .usable = false};
  const auto facts =
      shared_node_info("n", inventory, sharing(inventory, options::MemoryUnit::GiB), {ill});
  EXPECT_TRUE(facts.cards[0].healthy);
  EXPECT_FALSE(facts.cards[1].healthy);
}

TEST(SharedReport, CountsMemoryWhereTheKubeletDoesNot) {
  const auto inventory = machine();
  const auto gib = shared_node_report(
      shared_node_info("n", inventory, sharing(inventory, options::MemoryUnit::GiB), {}));
  EXPECT_FALSE(gib.capacity.contains("aliyun.com/gpu-mem"));
  EXPECT_EQ(gib.capacity.at("aliyun.com/gpu-count"), "3");
  const auto mib = shared_node_report(
      shared_node_info("n", inventory, sharing(inventory, options::MemoryUnit::MiB), {}));
  EXPECT_EQ(mib.capacity.at("aliyun.com/gpu-mem"), "431313");
  EXPECT_EQ(mib.labels.at("gpushare"), "true");
}

TEST(SharedReport, OfNothingTakesItBack) {
  const auto report = shared_node_report({.name = "n"});
  EXPECT_EQ(report.annotations.at("gantry.dev/shared-gpus"), std::nullopt);
}

TEST(OnGpus, AreContainersByTheirGrants) {
  const model::DeviceAllocation tokens{.pod = {.name_space = "d", .name = "p"},
                                       .container = "c",
                                       .resource = "aliyun.com/gpu-mem",
                                       .ids = {"gib-00001", "gib-00002"}};
  auto slot = tokens;
  slot.resource = "gantry.dev/share";
  auto other = tokens;
  other.pod.name = "q";
  model::Grant grant{.pod = {.uid = "uid", .name_space = "d", .name = "p"},
                     .resources = {{tokens.resource, tokens.ids}, {slot.resource, slot.ids}}};
  grant.share = model::GrantShare{.name = "slot-1", .parts = {{"GPU-a", 0, 2048, 0}}};
  const auto placed = holders_by_gpu({tokens, slot, other}, {{"c", grant}});
  EXPECT_EQ(placed[0].ids, (std::vector<std::string>{"GPU-a::0"}));
  EXPECT_TRUE(placed[1].ids.empty());
  EXPECT_EQ(placed[2].ids, other.ids);
}

TEST(NodePatches, AreWhatDiffers) {
  const NodeReport wanted{.annotations = {{"a", "1"}, {"b", std::nullopt}},
                          .labels = {{"gpushare", "true"}},
                          .capacity = {{"aliyun.com/gpu-count", "8"}}};
  const auto fresh = json::Document::parse(
      R"({"metadata":{"annotations":{"b":"old"}},"status":{"capacity":{"aliyun.com/gpu-count":"0"}}})");
  ASSERT_TRUE(fresh.ok());
  const auto patches = patches_for(wanted, *fresh);
  EXPECT_EQ(patches.metadata,
            R"({"metadata":{"annotations":{"a":"1","b":null},"labels":{"gpushare":"true"}}})");
  EXPECT_EQ(
      patches.status,
      R"({"status":{"capacity":{"aliyun.com/gpu-count":"8"},"allocatable":{"aliyun.com/gpu-count":"8"}}})");
  const auto same = json::Document::parse(
      R"({"metadata":{"annotations":{"a":"1"},"labels":{"gpushare":"true","x":"y"}},
          "status":{"capacity":{"aliyun.com/gpu-count":"8"},"allocatable":{"aliyun.com/gpu-count":"8"}}})");
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(patches_for(wanted, *same), NodePatches{});
}

}  // namespace
}  // namespace gantry::agent
