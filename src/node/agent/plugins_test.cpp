// SPDX-License-Identifier: Apache-2.0
#include "node/agent/plugins.hpp"

#include "node/agent/kubelet_fixture_for_test.hpp"
#include "node/agent/ownership_filter.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::agent {
namespace {

using metrics::Outcome;
using test::kGpuResource;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// NOLINTNEXTLINE(readability-identifier-naming): constant, though not constexpr
const std::string kPluginMemory{resources::kMemoryResource};

metrics::ResourceOutcome ok(const std::string& resource) {
  return {resource, Outcome::Ok};
}

metrics::ResourceOutcome failed(const std::string& resource) {
  return {resource, Outcome::Error};
}

class PluginsTest : public KubeletFixture {
 protected:
  PluginsTest() {
    begin([this](const std::string& resource, const kubelet::PreStartRequest& request) {
      starts_.emplace_back(resource, request.ids());
      if (refusal_) return request.fail(*refusal_);
      request.ready();
    });
  }

  std::string gpu(std::size_t index) const { return machine_.gpus[index].uuid.text; }
  std::string instance(std::size_t index) const {
    return machine_.gpus[2].mig.instances[index].uuid.text;
  }
  void set_unhealthy(const std::string& card, const std::string& mig = "") {
    plugins_->set_health({{.gpu = {card}, .mig = {mig}, .usable = false, .cause = "XID 79"}});
  }
  bool becomes_healthy(const std::string& resource, const std::set<std::string>& ids) {
    return until([&] { return kubelet_.healthy(resource) == ids; });
  }

  model::Inventory machine_ = plan::machine_for_test();
  std::vector<std::pair<std::string, kubelet::DeviceIds>> starts_;
  std::optional<Error> refusal_;
};

TEST_F(PluginsTest, EachResourceIsRegisteredWithItsDevices) {
  offer(machine_, mixed_mig_for_test());
  EXPECT_THAT(kubelet_.registrations(), SizeIs(2));
  EXPECT_THAT(kubelet_.healthy(kGpuResource), ElementsAre(gpu(0), gpu(1)));
  EXPECT_THAT(kubelet_.healthy(kMigResource), ElementsAre(instance(0), instance(1)));
  EXPECT_EQ(counters_.registrations[ok(kGpuResource)], 1U);
  EXPECT_THAT(lines_.text(), AllOf(HasSubstr(R"(resource="nvidia.com/gpu" devices=2)"),
                                   HasSubstr(R"(resource="nvidia.com/mig-1g.18gb" devices=2)")));
}

TEST_F(PluginsTest, HealthBeforeTheFirstOfferIsNotAnError) {
  set_unhealthy(gpu(0));
  EXPECT_THAT(plugins_->plugins(), IsEmpty());
  offer(machine_, mixed_mig_for_test());
  EXPECT_THAT(kubelet_.healthy(kGpuResource), ElementsAre(gpu(0), gpu(1)));
}

TEST_F(PluginsTest, AnUnhealthyGpuIsListedButNotAllocatableUntilItRecovers) {
  offer(machine_, mixed_mig_for_test());
  set_unhealthy(gpu(0));
  ASSERT_TRUE(becomes_healthy(kGpuResource, {gpu(1)}));
  EXPECT_EQ(kubelet_.capacity(kGpuResource), 2U);
  EXPECT_THAT(kubelet_.admit(pod_with("u1", {{kGpuResource, 2}})).error().text(),
              HasSubstr("Available: 1"));
  plugins_->set_health({});
  ASSERT_TRUE(becomes_healthy(kGpuResource, {gpu(0), gpu(1)}));
  EXPECT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 2}})).ok());
  EXPECT_THAT(kubelet_.registrations(), SizeIs(2)) << "health needs no new registration";
}

TEST_F(PluginsTest, AGpuThatIsUnhealthyWhenItIsFirstOfferedIsNotAllocatable) {
  health_ = {{.gpu = {gpu(1)}, .usable = false}};
  offer(machine_, mixed_mig_for_test());
  EXPECT_THAT(kubelet_.healthy(kGpuResource), ElementsAre(gpu(0)));
}

TEST_F(PluginsTest, AnUnhealthyInstanceLeavesItsNeighbourAllocatable) {
  offer(machine_, mixed_mig_for_test());
  set_unhealthy(gpu(2), instance(0));
  ASSERT_TRUE(becomes_healthy(kMigResource, {instance(1)}));
  EXPECT_THAT(kubelet_.healthy(kGpuResource), SizeIs(2));
}

TEST_F(PluginsTest, AnUnhealthyCardTakesItsInstancesAlong) {
  offer(machine_, mixed_mig_for_test());
  set_unhealthy(gpu(2));
  ASSERT_TRUE(becomes_healthy(kMigResource, {}));
  EXPECT_EQ(kubelet_.capacity(kMigResource), 2U);
}

TEST_F(PluginsTest, AnUnhealthyGpuTakesItsReplicasAlong) {
  auto options = mixed_mig_for_test();
  options.sharing = {.kind = options::SharingKind::TimeSlicing,
                     .resources = {{.name = kGpuResource, .replicas = 2}}};
  offer(machine_, options);
  ASSERT_EQ(kubelet_.capacity(kGpuResource), 4U);
  set_unhealthy(gpu(0));
  EXPECT_TRUE(becomes_healthy(kGpuResource, {gpu(1) + "::0", gpu(1) + "::1"}));
}

TEST_F(PluginsTest, TokensAreAllocatableWhileOneGpuIs) {
  const auto shared = shared_machine_for_test();
  offer(shared, shares_for_test());
  ASSERT_THAT(kubelet_.healthy(kPluginMemory), SizeIs(8));
  set_unhealthy(shared.gpus[0].uuid.text);
  for (const auto* plugin : plugins_->plugins()) {
    for (const auto& device : plugin->devices()) EXPECT_TRUE(device.healthy) << device.id;
  }
  plugins_->set_health({{.gpu = shared.gpus[0].uuid, .usable = false},
                        {.gpu = shared.gpus[1].uuid, .usable = false}});
  ASSERT_TRUE(becomes_healthy(kPluginMemory, {}));
  EXPECT_EQ(kubelet_.capacity(kPluginMemory), 8U);
  set_unhealthy(shared.gpus[1].uuid.text);
  EXPECT_TRUE(until([&] { return kubelet_.healthy(kPluginMemory).size() == 8; }));
}

TEST_F(PluginsTest, AResourceThatDisappearsIsSentAsAnEmptyListAndComesBack) {
  offer(machine_, mixed_mig_for_test());
  auto without_mig = machine_;
  without_mig.gpus.pop_back();
  offer(without_mig, mixed_mig_for_test());
  ASSERT_TRUE(until([&] { return kubelet_.capacity(kMigResource) == 0; }));
  EXPECT_TRUE(kubelet_.connected(kMigResource));
  EXPECT_THAT(lines_.text(), HasSubstr(R"(no more devices resource="nvidia.com/mig-1g.18gb")"));
  set_unhealthy(gpu(0));
  ASSERT_TRUE(becomes_healthy(kGpuResource, {gpu(1)}));
  EXPECT_EQ(kubelet_.capacity(kMigResource), 0U) << "health does not bring it back";
  offer(machine_, mixed_mig_for_test());
  EXPECT_THAT(kubelet_.healthy(kMigResource), SizeIs(2));
  EXPECT_THAT(kubelet_.registrations(), SizeIs(2)) << "it stayed registered";
}

TEST_F(PluginsTest, AGpuThatDisappearsIsNotAllocatedAnyMore) {
  offer(machine_, mixed_mig_for_test());
  auto one_less = machine_;
  one_less.gpus.erase(one_less.gpus.begin());
  offer(one_less, mixed_mig_for_test());
  EXPECT_THAT(kubelet_.healthy(kGpuResource), ElementsAre(gpu(1)));
  EXPECT_FALSE(kubelet_.admit(pod_with("u1", {{kGpuResource, 2}})).ok());
}

// A kubelet that has not read the new list yet asks for a GPU that is not the plugin's any more.
class WithdrawalTest : public PluginsTest {
 protected:
  void SetUp() override {
    offer(machine_, mixed_mig_for_test());
    ASSERT_TRUE(ownership_.open());
    settle_and_offer();
    ASSERT_THAT(kubelet_.healthy(kGpuResource), ElementsAre(gpu(0), gpu(1)));
  }
  // As the agent does it, without a turn of the loop: nothing reaches the kubelet.
  void settle_and_offer() {
    const auto options = mixed_mig_for_test();
    auto settled = resources::offer_of(machine_, options);
    ownership_.settle(settled, {});
    auto made = make_current_offer(machine_, std::move(settled), options, {});
    ASSERT_TRUE(made.ok()) << made.error().text();
    plugins_->offer(*made, {});
  }
  void expect_refused() {
    ASSERT_EQ(kubelet_.healthy(kGpuResource).size(), 2U) << "the kubelet has read the new list";
    const auto admitted = kubelet_.admit(pod_with("u1", {{kGpuResource, 2}}));
    ASSERT_FALSE(admitted.ok());
    EXPECT_THAT(admitted.error().text(), HasSubstr(gpu(0)));
    EXPECT_EQ(counters_.allocations[failed(kGpuResource)], 1U);
    EXPECT_THAT(starts_, IsEmpty());
  }

  OwnershipFilter ownership_{host_, log_};
};

TEST_F(WithdrawalTest, AGpuThatIsWithdrawnForACommandIsRefused) {
  ownership_.withhold(machine_.gpus[0].pci, "its owner is being changed");
  settle_and_offer();
  expect_refused();
}

TEST_F(WithdrawalTest, AGpuWhoseOwnerChangedIsRefused) {
  ASSERT_TRUE(ownership_.ledger()
                  ->change(machine_.gpus[0].pci, ownership::Owner::Vm, model::AllocationMode::Vm,
                           {.withdrawn = true})
                  .ok());
  settle_and_offer();
  expect_refused();
}

TEST_F(WithdrawalTest, AGpuWhoseOwnerIsBeingChangedIsRefused) {
  ASSERT_TRUE(ownership_.ledger()
                  ->begin({.gpu = machine_.gpus[0].pci,
                           .to = ownership::Owner::Vm,
                           .use = model::AllocationMode::Vm,
                           .what = "gantry vfio bind",
                           .pid = 1},
                          {.withdrawn = true})
                  .ok());
  settle_and_offer();
  expect_refused();
}

TEST_F(PluginsTest, AnswersComeFromTheNewestOffer) {
  auto options = mixed_mig_for_test();
  options.list_strategies = {options::ListStrategy::EnvVar};
  offer(machine_, options);
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  EXPECT_THAT(kubelet_.start_container("u1", "main")->env, SizeIs(1));
  options.list_strategies = {options::ListStrategy::CdiCri};
  offer(machine_, options);
  ASSERT_TRUE(kubelet_.admit(pod_with("u2", {{kGpuResource, 1}})).ok());
  const auto answer = kubelet_.start_container("u2", "main");
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->env, IsEmpty());
  EXPECT_THAT(answer->cdi_devices,
              ElementsAre("nvidia.com/gpu=" + kubelet_.ids_of("u2", "main", kGpuResource)[0]));
}

TEST_F(PluginsTest, ThePreferenceOfTheResourceDecides) {
  auto options = mixed_mig_for_test();
  options.sharing = {.kind = options::SharingKind::TimeSlicing,
                     .resources = {{.name = kGpuResource, .replicas = 2}}};
  offer(machine_, options);
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 2}})).ok());
  // The kubelet alone would take the first two ids, which are replicas of one GPU.
  const auto ids = kubelet_.ids_of("u1", "main", kGpuResource);
  ASSERT_THAT(ids, SizeIs(2));
  EXPECT_NE(ids[0].substr(0, ids[0].find("::")), ids[1].substr(0, ids[1].find("::")));
}

TEST_F(PluginsTest, AStartNamesTheResourceAndTheDevices) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 2}, {kMigResource, 1}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  EXPECT_THAT(starts_,
              ElementsAre(std::pair(kGpuResource, kubelet::DeviceIds{gpu(0), gpu(1)}),
                          std::pair(kMigResource, kubelet_.ids_of("u1", "main", kMigResource))));
}

TEST_F(PluginsTest, CallsAreCountedByResourceAndOutcome) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  refusal_ = Error(Errc::Busy, "the driver is being upgraded");
  EXPECT_FALSE(kubelet_.start_container("u1", "main").ok());
  EXPECT_EQ(counters_.allocations[ok(kGpuResource)], 1U);
  EXPECT_EQ(counters_.pre_starts[ok(kGpuResource)], 1U);
  EXPECT_EQ(counters_.pre_starts[failed(kGpuResource)], 1U);
  EXPECT_EQ(counters_.allocations.count(ok(kMigResource)), 0U);
  EXPECT_THAT(
      lines_.text(),
      HasSubstr(
          R"(method="PreStartContainer" resource="nvidia.com/gpu" err="the driver is being upgraded")"));
}

TEST_F(PluginsTest, AnAllocationThatIsRefusedIsCountedAndLogged) {
  auto broken = machine_;  // a GPU without a device node
  std::erase_if(broken.nodes, [](const auto& node) { return node.path == "/dev/nvidia0"; });
  offer(broken, mixed_mig_for_test());
  const auto admitted = kubelet_.admit(pod_with("u1", {{kGpuResource, 2}}));
  ASSERT_FALSE(admitted.ok());
  EXPECT_THAT(admitted.error().text(), HasSubstr("gantry doctor --fix"));
  EXPECT_EQ(counters_.allocations[failed(kGpuResource)], 1U);
  EXPECT_THAT(lines_.text(),
              HasSubstr(fmt::format(R"(Allocate resource="nvidia.com/gpu" ids=["{}","{}"])", gpu(0),
                                    gpu(1))));
}

TEST_F(PluginsTest, ARegistrationThatFailsIsCountedLoggedAndTriedAgain) {
  kubelet_.answer_register_with(
      grpc::CallStatus{grpc::StatusCode::Unavailable, "the kubelet is starting"});
  offering_ = current_offer_of(machine_, mixed_mig_for_test());
  plugins_->offer(offering_, {});
  ASSERT_TRUE(until([&] {
    return counters_.registrations[failed(kGpuResource)] > 0 &&
           counters_.registrations[failed(kMigResource)] > 0;
  }));
  EXPECT_FALSE(plugins_->all_registered());
  EXPECT_THAT(lines_.text(), HasSubstr("the kubelet is starting"));
  kubelet_.answer_register_with(std::nullopt);
  EXPECT_TRUE(until([&] { return plugins_->all_registered(); }));
  EXPECT_EQ(counters_.registrations[ok(kGpuResource)], 1U);
}

TEST_F(PluginsTest, AKubeletThatComesBackHasWhatChangedWhileItWasAway) {
  offer(machine_, mixed_mig_for_test());
  kubelet_.kill();
  ASSERT_TRUE(until([&] { return !plugins_->all_registered(); }));
  set_unhealthy(gpu(1));
  ASSERT_TRUE(kubelet_.start().ok());
  EXPECT_TRUE(becomes_healthy(kGpuResource, {gpu(0)}));
  EXPECT_TRUE(until([&] { return plugins_->all_registered(); }));
}

}  // namespace
}  // namespace gantry::agent
