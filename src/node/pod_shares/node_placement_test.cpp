// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/node_placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::pod_shares {
namespace {

using grants::GrantFile;
using model::ContainerPhase;
using testing::HasSubstr;

podspec::NodeInfo node() {
  podspec::NodeInfo facts{.name = "n"};
  facts.cards.push_back({.uuid = {"GPU-a"}, .index = 0, .mib = 16'384});
  facts.cards.push_back({.uuid = {"GPU-b"}, .index = 1, .mib = 16'384});
  return facts;
}

podspec::PodRequest asks(std::string uid, std::uint64_t gib, std::uint32_t cores = 0) {
  podspec::PodRequest ask{.pod = {.uid = std::move(uid), .name_space = "d", .name = "p"}};
  ask.containers.push_back({.container = "c",
                            .memory = {podspec::Amount::Kind::Units, gib},
                            .cores = cores,
                            .resource = std::string(podspec::kAliyunGpuMem)});
  ask.main_containers = 1;
  return ask;
}

podspec::Placement on(const std::string& gpu, std::uint64_t gib, std::uint32_t cores = 0) {
  return {{.container = "c", .parts = {{gpu, gpu == "GPU-a" ? 0U : 1U, gib * 1024, cores}}}};
}

GrantFile given(const std::string& uid, const std::string& gpu, std::uint64_t gib,
                ContainerPhase phase = ContainerPhase::Main, const std::string& container = "c",
                std::uint32_t cores = 0) {
  model::Grant grant{.pod = {.uid = uid, .name_space = "d", .name = "pod-" + uid}};
  grant.share = model::GrantShare{
      .name = "slot-" + uid + container, .phase = phase, .parts = {{gpu, 0, gib * 1024, cores}}};
  return {container, grant};
}

TEST(CheckPlacement, TakesWhatThePodAsksFor) {
  EXPECT_TRUE(check_placement(asks("u", 4), on("GPU-a", 4), node()).ok());
}

TEST(CheckPlacement, RefusesAnotherAmountThanThePodAsksFor) {
  const auto refused = check_placement(asks("u", 4), on("GPU-a", 8), node());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), HasSubstr("8192 MiB"));
  EXPECT_FALSE(check_placement(asks("u", 4), on("GPU-a", 4, 30), node()).ok());
}

TEST(CheckPlacement, RefusesACardOfAnotherNode) {
  const auto refused = check_placement(asks("u", 4), on("GPU-z", 4), node());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("not shared on this node"));
}

TEST(CheckPlacement, WaitsForACardThatIsNotHealthy) {
  auto facts = node();
  facts.cards[0].healthy = false;
  const auto refused = check_placement(asks("u", 4), on("GPU-a", 4), facts);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Busy);
}

TEST(CheckPlacement, RefusesOneCardTwiceForOneContainer) {
  auto ask = asks("u", 4);
  ask.containers[0].gpus = 2;
  auto placement = on("GPU-a", 4);
  placement[0].parts.push_back(placement[0].parts[0]);
  EXPECT_FALSE(check_placement(ask, placement, node()).ok());
}

TEST(CheckRoom, CountsWhatThisNodeHasGivenWhateverTheApiServerSays) {
  const std::vector<GrantFile> granted{given("v", "GPU-a", 10)};
  EXPECT_TRUE(check_room(asks("u", 6), on("GPU-a", 6), node(), granted).ok());
  const auto refused = check_room(asks("u", 7), on("GPU-a", 7), node(), granted);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_THAT(refused.error().text(), HasSubstr("d/pod-v"));
  EXPECT_TRUE(check_room(asks("u", 7), on("GPU-b", 7), node(), granted).ok());
}

TEST(CheckRoom, DoesNotCountThePodItselfTwice) {
  const std::vector<GrantFile> granted{given("u", "GPU-a", 10)};
  EXPECT_TRUE(check_room(asks("u", 10), on("GPU-a", 10), node(), granted).ok());
}

TEST(CheckRoom, LeavesAloneWhoAskedToBeAlone) {
  const std::vector<GrantFile> granted{given("v", "GPU-a", 4, ContainerPhase::Main, "c", 100)};
  EXPECT_FALSE(check_room(asks("u", 4), on("GPU-a", 4), node(), granted).ok());
  EXPECT_FALSE(check_room(asks("u", 4, 100), on("GPU-b", 4, 100), node(),
                          std::vector<GrantFile>{given("v", "GPU-b", 4)})
                   .ok());
}

TEST(CheckRoom, CountsTimeToo) {
  const std::vector<GrantFile> granted{given("v", "GPU-a", 1, ContainerPhase::Main, "c", 60)};
  EXPECT_TRUE(check_room(asks("u", 1, 40), on("GPU-a", 1, 40), node(), granted).ok());
  EXPECT_FALSE(check_room(asks("u", 1, 41), on("GPU-a", 1, 41), node(), granted).ok());
}

TEST(CheckRoom, CountsContainersThatRunInTurnOnce) {
  const std::vector<GrantFile> granted{given("v", "GPU-a", 10, ContainerPhase::Init, "i"),
                                       given("v", "GPU-a", 8, ContainerPhase::Main, "c")};
  EXPECT_TRUE(check_room(asks("u", 6), on("GPU-a", 6), node(), granted).ok());
  EXPECT_FALSE(check_room(asks("u", 7), on("GPU-a", 7), node(), granted).ok());
}

TEST(PlaceHere, FindsRoomBesideWhatWasGivenAndPromised) {
  const std::vector<GrantFile> granted{given("v", "GPU-a", 10)};
  const std::vector<PlacedPod> placed_pods{{asks("w", 12), on("GPU-b", 12)}};
  const auto six = place_on_this_node(asks("u", 6), node(), placed_pods, granted);
  ASSERT_TRUE(six.ok()) << six.error().text();
  EXPECT_EQ((*six)[0].parts[0].uuid.text, "GPU-a");
  const auto seven = place_on_this_node(asks("u", 7), node(), placed_pods, granted);
  ASSERT_FALSE(seven.ok());
  EXPECT_EQ(seven.error().code(), Errc::Busy);
}

TEST(PlaceHere, LeavesRoomForWhatAPodHasNotStartedYet) {
  auto both = asks("w", 8);
  both.containers.push_back(both.containers[0]);
  both.containers[1].container = "d";
  podspec::Placement placement = on("GPU-a", 8);
  placement.push_back({.container = "d", .parts = {{{"GPU-a"}, 0, 8192, 0}}});
  const std::vector<PlacedPod> placed_pods{{both, placement}};
  const std::vector<GrantFile> granted{given("w", "GPU-a", 8), given("v", "GPU-b", 12)};
  EXPECT_FALSE(place_on_this_node(asks("u", 6), node(), placed_pods, granted).ok());
  EXPECT_TRUE(place_on_this_node(asks("u", 4), node(), placed_pods, granted).ok());
}

TEST(PlaceHere, LeavesAContainerWhereItIs) {
  auto ask = asks("u", 4);
  ask.containers.push_back(ask.containers[0]);
  ask.containers[1].container = "d";
  ask.containers[1].position = 1;
  ask.main_containers = 2;
  const std::vector<GrantFile> granted{given("u", "GPU-b", 4)};
  const auto placed = place_on_this_node(ask, node(), {}, granted);
  ASSERT_TRUE(placed.ok()) << placed.error().text();
  EXPECT_EQ(find(*placed, "c")->parts[0].uuid.text, "GPU-b");
  EXPECT_EQ(find(*placed, "d")->parts.size(), 1U);
}

TEST(WithinCharge, LeavesTheOthersOfThePodWhatTheyAsk) {
  const std::vector<model::GpuShare> greater{{{"GPU-a"}, 0, 10'000, 60}};
  const podspec::ContainerPlacement stays{"c", {{{"GPU-a"}, 0, 2000, 10}}};
  const std::vector<podspec::Charge> charged{{.uuid = {"GPU-a"}, .mib = 10'000, .cores = 60}};
  EXPECT_EQ(limit_to_charge(greater, stays, charged, {}), greater);
  const auto other = given("u", "GPU-a", 3, ContainerPhase::Main, "d", 20);
  const std::vector<model::GrantShare> others{*other.grant.share};
  EXPECT_EQ(limit_to_charge(greater, stays, charged, others),
            (std::vector<model::GpuShare>{{{"GPU-a"}, 0, 10'000 - 3072, 40}}));
  const auto large = given("u", "GPU-a", 9, ContainerPhase::Main, "d", 55);
  EXPECT_EQ(limit_to_charge(greater, stays, charged, {&*large.grant.share, 1}), stays.parts);
}

TEST(Together, IsTheGreaterOnOneCardAndTheLastOnTwo) {
  const std::vector<podspec::ContainerPlacement> same{{"i", {{{"GPU-a"}, 0, 4096, 50}}},
                                                      {"c", {{{"GPU-a"}, 0, 2048, 0}}}};
  EXPECT_EQ(merge_containers(same), (std::vector<model::GpuShare>{{{"GPU-a"}, 0, 4096, 0}}));
  const std::vector<podspec::ContainerPlacement> apart{{"i", {{{"GPU-a"}, 0, 4096, 50}}},
                                                       {"c", {{{"GPU-b"}, 1, 2048, 10}}}};
  EXPECT_EQ(merge_containers(apart), (std::vector<model::GpuShare>{{{"GPU-b"}, 1, 2048, 10}}));
}

}  // namespace
}  // namespace gantry::pod_shares
