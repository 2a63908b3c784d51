// SPDX-License-Identifier: Apache-2.0
#include "node/agent/ownership_filter.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using model::AllocationMode;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string gpu_name = "nvidia.com/gpu";
const model::PciAddress gpu_address{.bus = 0x3b};
const ownership::GpuUsage unused{.withdrawn = true};

resources::Offer offered(AllocationMode use, const std::string& name = gpu_name) {
  const std::string suffix = use == AllocationMode::Replicas ? "::0" : "";
  return {.resources = {{.name = name,
                         .use = use,
                         .devices = {{.id = "GPU-a" + suffix, .gpu = {"GPU-a"}}}}},
          .uses = {{.gpu = {"GPU-a"}, .pci = gpu_address, .index = 0, .use = use}}};
}

class OwnershipTest : public testing::Test {
 protected:
  // Only the devices that are left, and why the others are not.
  std::size_t settle(resources::Offer offer, const OwnershipFilter::GpuUsage& in_use = {}) {
    now_ += 1s;
    ownership_.settle(offer, in_use, now_);
    notes_ = offer.notes;
    return offer.resources.at(0).devices.size();
  }
  static OwnershipFilter::GpuUsage held_as(const std::string& resource, bool certain) {
    return {.certain = certain,
            .pods = {{"GPU-a", {{.pod = "ns/p", .resource = resource, .device = "GPU-a"}}}}};
  }

  test::Tree tree_;
  sys::Host host_ = tree_.host();
  std::string logged_;
  Log log_{LogForm::Klog, 0, [this](std::string_view line) { logged_ += line; }};
  OwnershipFilter ownership_{host_, log_};
  OwnershipFilter::Clock::time_point now_ = OwnershipFilter::Clock::now();
  std::vector<std::string> notes_;
};

TEST_F(OwnershipTest, AUseChangesOnceTheKubeletSaysThatTheGpuIsFree) {
  ASSERT_TRUE(ownership_.open());
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 1U);
  EXPECT_EQ(settle(offered(AllocationMode::Replicas)), 0U);
  EXPECT_EQ(settle(offered(AllocationMode::Replicas)), 0U) << "nobody was asked since";
  EXPECT_EQ(settle(offered(AllocationMode::Replicas), held_as(gpu_name, true)), 0U);
  EXPECT_THAT(notes_, testing::ElementsAre(HasSubstr("held by ns/p")));
  EXPECT_EQ(settle(offered(AllocationMode::Replicas), {.certain = true}), 1U);
}

TEST_F(OwnershipTest, AGpuThatWasWithdrawnJustNowDoesNotChange) {
  ASSERT_TRUE(ownership_.open());
  auto whole = offered(AllocationMode::Whole);
  ownership_.settle(whole, {}, now_);
  auto first = offered(AllocationMode::Replicas);
  ownership_.settle(first, {}, now_);
  auto second = offered(AllocationMode::Replicas);
  EXPECT_EQ(ownership_.settle(second, {.certain = true}, now_ + 100ms), 400ms)
      << "as soon as the kubelet has taken note";
  EXPECT_EQ(ownership_.settle(second, {}, now_ + 600ms), 0ms) << "and nobody was asked";
  EXPECT_THAT(second.resources[0].devices, IsEmpty());
}

TEST_F(OwnershipTest, UnderAnotherNameItIsNotOfferedWhileAPodHasIt) {
  ASSERT_TRUE(ownership_.open());
  EXPECT_EQ(settle(offered(AllocationMode::Whole), held_as(gpu_name, false)), 1U);
  EXPECT_EQ(settle(offered(AllocationMode::Whole, "nvidia.com/h200"), held_as(gpu_name, false)),
            0U);
  EXPECT_THAT(notes_, testing::ElementsAre(HasSubstr("pod ns/p has GPU-a as nvidia.com/gpu")));
  EXPECT_EQ(settle(offered(AllocationMode::Whole, "nvidia.com/h200")), 1U);
}

TEST_F(OwnershipTest, WhileAnotherAgentHasTheLedgerItsWordCounts) {
  OwnershipFilter former(host_, log_);
  ASSERT_TRUE(former.open());
  auto whole = offered(AllocationMode::Whole);
  ASSERT_FALSE(former.settle(whole, {}, now_));
  EXPECT_FALSE(ownership_.open());
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 1U);
  EXPECT_EQ(settle(offered(AllocationMode::Replicas)), 0U);
}

TEST_F(OwnershipTest, WhileAnotherAgentHasTheLedgerACardKeepsItsOwnerInAnotherSlot) {
  auto former = ownership::OwnershipStore::open(host_);
  ASSERT_TRUE(former.ok());
  ASSERT_TRUE(
      former->adopt({.bus = 0x77}, {"GPU-a"}, ownership::Owner::Vm, AllocationMode::Vm).ok());
  EXPECT_FALSE(ownership_.open());
  EXPECT_TRUE(ownership_.another_has_ledger());
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 0U) << "it was virtual machines' in slot 77";
}

TEST_F(OwnershipTest, AGpuOfAVirtualMachineIsNeverTakenBack) {
  ASSERT_TRUE(ownership_.open());
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 1U);
  ASSERT_TRUE(ownership_.ledger()
                  ->change(gpu_address, ownership::Owner::Vm, AllocationMode::Vm, unused)
                  .ok());
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(settle(offered(AllocationMode::Whole), {.certain = true}), 0U);
  EXPECT_THAT(notes_, testing::ElementsAre(HasSubstr("belongs to vm")));
  auto offer = offered(AllocationMode::Whole);
  EXPECT_FALSE(ownership_.settle(offer, {.certain = true}, now_)) << "there is nothing to wait for";
  EXPECT_EQ(ownership_.ledger()->state().find(gpu_address)->owner, ownership::Owner::Vm);
}

TEST_F(OwnershipTest, AGpuWhoseOwnerIsBeingChangedIsNotOffered) {
  ASSERT_TRUE(ownership_.open());
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 1U);
  const ownership::OwnerIntent intent{.gpu = gpu_address,
                                      .to = ownership::Owner::Vm,
                                      .use = AllocationMode::Vm,
                                      .what = "gantry vfio bind 0000:3b:00.0",
                                      .pid = 4711};
  ASSERT_TRUE(ownership_.ledger()->begin(intent, unused).ok());
  EXPECT_EQ(settle(offered(AllocationMode::Whole), {.certain = true}), 0U);
  EXPECT_THAT(notes_, testing::ElementsAre(HasSubstr("gantry vfio bind")));
  ASSERT_TRUE(ownership_.ledger()->cancel(intent).ok());
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 1U);
}

TEST_F(OwnershipTest, WithheldGpusStayAwayUntilLetGo) {
  ASSERT_TRUE(ownership_.open());
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 1U);
  ownership_.withhold(gpu_address, "a command asked for it");
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 0U);
  EXPECT_THAT(notes_, testing::ElementsAre(HasSubstr("a command asked for it")));
  EXPECT_FALSE(ownership_.withdrawn(gpu_address, now_ + 100ms));
  EXPECT_TRUE(ownership_.withdrawn(gpu_address, now_ + 1s));
  ownership_.let_go(gpu_address);
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 1U);
  EXPECT_FALSE(ownership_.withdrawn(gpu_address, now_ + 1s));
}

resources::Offer offered_instances() {
  const auto instance = [](const std::string& uuid) {
    return model::AdvertisedDevice{.id = uuid, .gpu = {"GPU-a"}, .mig = {uuid}};
  };
  return {.resources = {{.name = "nvidia.com/mig-1g.18gb",
                         .use = AllocationMode::Mig,
                         .devices = {instance("MIG-kept"), instance("MIG-going")}}},
          .uses = {{.gpu = {"GPU-a"}, .pci = gpu_address, .use = AllocationMode::Mig}}};
}

TEST_F(OwnershipTest, KeptInstancesStayOffered) {
  ASSERT_TRUE(ownership_.open());
  EXPECT_EQ(settle(offered_instances()), 2U);
  ownership_.withhold(gpu_address, "a command asked for it", {"MIG-kept"});
  EXPECT_EQ(settle(offered_instances()), 1U);
  EXPECT_THAT(notes_, testing::ElementsAre(HasSubstr("but for some of its instances")));
  EXPECT_TRUE(ownership_.withdrawn(gpu_address, now_ + 1s));
  ownership_.keep_withheld(gpu_address, "the agent reads it again");
  EXPECT_EQ(settle(offered_instances()), 1U);
  ownership_.let_go(gpu_address);
  EXPECT_EQ(settle(offered_instances()), 2U);
}

// As after a crash: the command has ended, its intent is there.
TEST_F(OwnershipTest, KeptInstancesOfAnIntentStayOffered) {
  ASSERT_TRUE(ownership_.open());
  EXPECT_EQ(settle(offered_instances()), 2U);
  const ownership::OwnerIntent intent{.gpu = gpu_address,
                                      .use = AllocationMode::Mig,
                                      .what = "gantry mig apply --gpu 0000:3b:00.0 1g.18gb",
                                      .pid = 4711,
                                      .kept = {"MIG-kept"}};
  ASSERT_TRUE(ownership_.ledger()->begin(intent, unused).ok());
  EXPECT_EQ(settle(offered_instances()), 1U);
  ASSERT_TRUE(ownership_.ledger()->finish(intent).ok());
  EXPECT_EQ(settle(offered_instances()), 2U);
}

TEST_F(OwnershipTest, OfAnUnreadableLedgerNothingIsGuessed) {
  tree_.file("var/lib/gantry/ledger", "scribble");
  EXPECT_FALSE(ownership_.open());
  EXPECT_EQ(settle(offered(AllocationMode::Whole)), 0U);
  EXPECT_THAT(notes_, testing::ElementsAre(HasSubstr("mv ")));
  const auto once = logged_.size();
  EXPECT_FALSE(ownership_.open());
  EXPECT_EQ(logged_.size(), once) << "said once, not twice a second";
}

}  // namespace
}  // namespace gantry::agent
