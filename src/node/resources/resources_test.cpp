// SPDX-License-Identifier: Apache-2.0
#include "node/resources/resources.hpp"

#include "container/plan/machine_for_test.hpp"
#include "node/resources/offer_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::resources {
namespace {

using model::AllocationMode;
using model::MigMode;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// GPU 0 and 1 whole, GPU 2 in MIG mode with two instances of 1g.18gb.
const model::Inventory offered_machine = plan::machine_for_test();

model::Inventory without_mig() {
  auto machine = offered_machine;
  machine.gpus[2].mig = {.current = MigMode::Disabled};
  return machine;
}

std::string refused(const model::Inventory& machine, const options::Options& options) {
  const auto offer = resources(machine, options);
  return offer.ok() ? "accepted" : offer.error().text();
}

std::vector<std::string> names(const Offer& offer) {
  std::vector<std::string> result;
  for (const auto& resource : offer.resources)
    result.push_back(fmt::format("{} x{}", resource.name, resource.devices.size()));
  return result;
}

std::vector<std::string> ids(const model::AdvertisedResource& resource) {
  std::vector<std::string> result;
  for (const auto& device : resource.devices) result.push_back(device.id);
  return result;
}

TEST(Resources, WithoutMigStrategyAreWholeGpusAlsoThoseInMigMode) {
  const auto offer = offer_of(offered_machine, {});
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x3"));
  EXPECT_EQ(offer.resources[0].devices[0].id, offered_machine.gpus[0].uuid.text);
  EXPECT_EQ(offer.uses[2].use, AllocationMode::Whole);
}

TEST(Resources, MixedHaveInstancesByProfile) {
  auto machine = offered_machine;
  machine.gpus[2].mig.instances[1].profile = "1g.18gb+me";
  const auto offer = offer_of(machine, {.mig_strategy = options::MigStrategy::Mixed});
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x2", "nvidia.com/mig-1g.18gb x1",
                                        "nvidia.com/mig-1g.18gb.me x1"));
  EXPECT_EQ(offer.resources[1].use, AllocationMode::Mig);
  EXPECT_EQ(offer.resources[1].devices[0].gpu, machine.gpus[2].uuid);
  EXPECT_EQ(offer.resources[1].devices[0].id, machine.gpus[2].mig.instances[0].uuid.text);
  EXPECT_EQ(offer.uses[2].use, AllocationMode::Mig);
}

TEST(Resources, MixedLeaveOutInstancesWithPartOfTheirCompute) {
  auto machine = offered_machine;
  machine.gpus[2].mig.instances[1].profile = "1c.3g.71gb";
  const auto offer = offer_of(machine, {.mig_strategy = options::MigStrategy::Mixed});
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x2", "nvidia.com/mig-1g.18gb x1"));
  EXPECT_THAT(offer.notes, Contains(HasSubstr("1c.3g.71gb")));
}

TEST(Resources, MixedWithAnEmptyMigGpuSaySo) {
  auto machine = offered_machine;
  machine.gpus[2].mig.instances.clear();
  const auto offer = offer_of(machine, {.mig_strategy = options::MigStrategy::Mixed});
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x2"));
  EXPECT_THAT(offer.notes, Contains(HasSubstr("GPU 2 is in MIG mode and has no instance")));
}

TEST(Resources, SingleAreWholeGpusWhereNoneIsInMigMode) {
  const auto offer = offer_of(without_mig(), {.mig_strategy = options::MigStrategy::Single});
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x3"));
}

TEST(Resources, SingleAreInstancesWhereAllAreAlike) {
  auto machine = offered_machine;
  machine.gpus.erase(machine.gpus.begin(), machine.gpus.begin() + 2);
  const auto offer = offer_of(machine, {.mig_strategy = options::MigStrategy::Single});
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x2"));
  EXPECT_EQ(offer.resources[0].use, AllocationMode::Mig);
}

TEST(Resources, SingleRefuseEveryOtherLayoutAndSayWhy) {
  const options::Options single{.mig_strategy = options::MigStrategy::Single};
  EXPECT_THAT(refused(offered_machine, single),
              AllOf(HasSubstr("GPU 2 is in MIG mode and GPU 0 is not"), HasSubstr("-i 0 -mig 1")));
  auto machine = offered_machine;
  machine.gpus.erase(machine.gpus.begin(), machine.gpus.begin() + 2);
  machine.gpus[0].mig.instances[1].profile = "2g.35gb";
  EXPECT_THAT(refused(machine, single), HasSubstr("2:0 is 1g.18gb and 2:1 is 2g.35gb"));
  machine.gpus[0].mig.instances.clear();
  EXPECT_THAT(refused(machine, single), HasSubstr("has no instance"));
}

TEST(Resources, SharedAreReplicasOfEachGpu) {
  const auto offer = offer_of(without_mig(), options_from(R"(
sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: gpu, replicas: 2}]}})"));
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x6"));
  const auto& shared = offer.resources[0];
  EXPECT_EQ(shared.use, AllocationMode::Replicas);
  EXPECT_TRUE(shared.only_one);
  const auto uuid = offered_machine.gpus[0].uuid.text;
  EXPECT_EQ(shared.devices[1].id, uuid + "::1");
  EXPECT_EQ(shared.devices[1].replica, 1);
  EXPECT_EQ(shared.devices[1].gpu.text, uuid);
  EXPECT_THAT(offer.uses[0].why, HasSubstr("c.yaml:3"));
}

TEST(Resources, SharedAreRenamedByDefaultOrByName) {
  EXPECT_THAT(names(offer_of(without_mig(), options_from(R"(
sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 2}]}})"))),
              ElementsAre("nvidia.com/gpu.shared x6"));
  EXPECT_THAT(names(offer_of(without_mig(), options_from(R"(
sharing: {timeSlicing: {resources: [{name: gpu, rename: small, devices: [1, GPU-none], replicas: 3}]}})"))),
              ElementsAre("nvidia.com/gpu x2", "nvidia.com/small x3"));
}

TEST(Resources, OfEachGpuCanDiffer) {
  const auto offer = offer_of(without_mig(), options_from(R"(
sharing: {timeSlicing: {renameByDefault: true, resources: [
  {name: gpu, devices: [0], replicas: 2}, {name: gpu, devices: 1, replicas: 4}]}})"));
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x1", "nvidia.com/gpu.shared x6"));
  EXPECT_EQ(offer.uses[0].use, AllocationMode::Replicas);
  EXPECT_EQ(offer.uses[1].use, AllocationMode::Replicas);
  EXPECT_EQ(offer.uses[2].use, AllocationMode::Whole);
}

TEST(Resources, InstancesCanBeSharedToo) {
  auto options = options_from(R"(
sharing: {timeSlicing: {resources: [{name: mig-1g.18gb, rename: tiny, devices: ["2:1"], replicas: 2}]}})");
  options.mig_strategy = options::MigStrategy::Mixed;
  const auto offer = offer_of(offered_machine, options);
  EXPECT_THAT(names(offer),
              ElementsAre("nvidia.com/gpu x2", "nvidia.com/mig-1g.18gb x1", "nvidia.com/tiny x2"));
  EXPECT_EQ(offer.resources[2].devices[0].id,
            offered_machine.gpus[2].mig.instances[1].uuid.text + "::0");
  EXPECT_EQ(offer.uses[2].use, AllocationMode::Mig);
}

TEST(Resources, OfWhichSomeAreSharedHaveTheOthersOnce) {
  const auto offer = offer_of(without_mig(), options_from(R"(
sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: gpu, devices: [1], replicas: 2}]}})"));
  ASSERT_THAT(names(offer), ElementsAre("nvidia.com/gpu x4"));
  const auto uuid = [](std::size_t i) { return offered_machine.gpus[i].uuid.text; };
  EXPECT_THAT(ids(offer.resources[0]),
              ElementsAre(uuid(0), uuid(1) + "::0", uuid(1) + "::1", uuid(2)));
  EXPECT_EQ(offer.resources[0].use, AllocationMode::Replicas);
  EXPECT_TRUE(offer.resources[0].only_one);
  EXPECT_EQ(offer.uses[0].use, AllocationMode::Whole);
  EXPECT_EQ(offer.uses[1].use, AllocationMode::Replicas);
  EXPECT_THAT(offer.notes, ElementsAre(AllOf(HasSubstr("c.yaml:3"), HasSubstr("rename"))));
}

TEST(Resources, OneNameForWholeAndSharedByARuleIsRefused) {
  EXPECT_THAT(refused(without_mig(), options_from(R"(
gantry: {gpus: [{devices: [1], use: replicas, replicas: 3}]})")),
              AllOf(HasSubstr("GPU 0 as whole (the default)"), HasSubstr("GPU 1 as replicas"),
                    HasSubstr("c.yaml:3"), HasSubstr("rename")));
}

TEST(Resources, OfWhichMpsSharesSomeLeaveOutTheOthers) {
  auto options =
      options_from("sharing: {mps: {resources: [{name: gpu, devices: [1], replicas: 2}]}}");
  options.mps_root = "/run/nvidia/mps";
  const auto offer = offer_of(without_mig(), options);
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x2"));
  EXPECT_THAT(offer.notes,
              ElementsAre(HasSubstr("GPU 0 is not offered"), HasSubstr("GPU 2 is not offered")));
}

TEST(Resources, NamedByCdiLeaveOutAGpuInMigModeThatNoSpecificationHas) {
  for (const auto strategy :
       {options::ListStrategy::CdiCri, options::ListStrategy::CdiAnnotations}) {
    const auto offer =
        offer_of(offered_machine, {.list_strategies = {options::ListStrategy::EnvVar, strategy}});
    EXPECT_THAT(names(offer), ElementsAre("nvidia.com/gpu x2"));
    EXPECT_THAT(offer.notes, ElementsAre(AllOf(HasSubstr("GPU 2 is in MIG mode"),
                                               HasSubstr("--mig-strategy=mixed"))));
  }
  EXPECT_THAT(
      names(offer_of(offered_machine, {.list_strategies = {options::ListStrategy::EnvVar}})),
      ElementsAre("nvidia.com/gpu x3"));
}

TEST(Resources, AGpuClaimedTwiceIsAnErrorThatNamesBoth) {
  const auto conflict = [](std::string_view file) {
    return refused(without_mig(), options_from(file));
  };
  EXPECT_THAT(conflict(R"(
gantry:
  gpus:
  - {devices: [0], use: vm}
  - {devices: [0, 1], use: whole}
)"),
              AllOf(HasSubstr("GPU 0"), HasSubstr("c.yaml:5 (use: vm)"),
                    HasSubstr("c.yaml:6 (use: whole)")));
  EXPECT_THAT(conflict(R"(
gantry: {gpus: [{devices: [0], use: vm}]}
sharing:
  timeSlicing:
    resources:
    - {name: gpu, devices: [1], rename: a, replicas: 2}
    - {name: gpu, devices: [1], rename: b, replicas: 2}
)"),
              AllOf(HasSubstr("GPU 1"), HasSubstr("c.yaml:7"), HasSubstr("c.yaml:8")));
  EXPECT_THAT(conflict(R"(
gantry: {gpus: [{devices: [0], use: whole}]}
sharing: {timeSlicing: {resources: [{name: gpu, devices: [0], replicas: 2}]}}
)"),
              AllOf(HasSubstr("c.yaml:3"), HasSubstr("c.yaml:4")));
  EXPECT_THAT(conflict("gantry: {gpus: [{use: vm}, {use: whole}]}"), HasSubstr("claimed twice"));
}

TEST(Resources, TheMoreSpecificSettingWins) {
  const auto offer = offer_of(without_mig(), options_from(R"(
gantry: {gpus: [{devices: [0], use: vm}, {devices: 1, use: whole, name: big}]}
sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}
)"));
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/big x1", "nvidia.com/gpu x2"));
  EXPECT_EQ(offer.uses[0].use, AllocationMode::Vm);
  EXPECT_THAT(offer.notes, Contains(HasSubstr("GPU 0 is set aside for vm")));
  EXPECT_EQ(offer.uses[1].use, AllocationMode::Whole);
  EXPECT_EQ(offer.uses[2].use, AllocationMode::Replicas);
}

TEST(Resources, ARuleAndTheMigModeMustAgree) {
  auto options = options_from("gantry: {gpus: [{devices: [0], use: mig}]}");
  options.mig_strategy = options::MigStrategy::Mixed;
  EXPECT_THAT(refused(offered_machine, options), HasSubstr("nvidia-smi -i 0 -mig 1"));
  options = options_from("gantry: {gpus: [{devices: [2], use: whole}]}");
  EXPECT_EQ(refused(offered_machine, options), "accepted");
  options.mig_strategy = options::MigStrategy::Mixed;
  EXPECT_THAT(refused(offered_machine, options), HasSubstr("contradict"));
  options = options_from("gantry: {gpus: [{devices: [2], use: mig}]}");
  EXPECT_THAT(refused(offered_machine, options), HasSubstr("--mig-strategy=mixed"));
}

TEST(Resources, AreNamedByModel) {
  auto machine = without_mig();
  machine.gpus[1].name = "NVIDIA A100-SXM4-40GB";
  const auto offer =
      offer_of(machine, options_from("resources: {gpus: [{pattern: \"*A100*\", name: a100}]}"));
  EXPECT_THAT(names(offer), ElementsAre("nvidia.com/a100 x1", "nvidia.com/gpu x2"));
}

TEST(Resources, KnowNoNumaNodeWhereTheMachineKnowsNone) {
  auto machine = without_mig();
  machine.gpus[0].numa_node = 0;
  const auto offer = offer_of(machine, {});
  EXPECT_EQ(offer.resources[0].devices[0].numa_node, 0);
  EXPECT_EQ(offer.resources[0].devices[1].numa_node, std::nullopt);
}

TEST(Resources, LeaveOutTheDisplayAndWhatHasNoName) {
  auto machine = without_mig();
  machine.gpus[0].name = "NVIDIA DGX Display";
  machine.gpus[1].uuid = {};
  const auto offer = offer_of(machine, {});
  EXPECT_THAT(ids(offer.resources[0]), ElementsAre(machine.gpus[2].uuid.text));
  EXPECT_EQ(offer.notes.size(), 2U);
}

TEST(Resources, OfAMachineWithoutGpusAreNone) {
  EXPECT_THAT(offer_of({}, {}).resources, IsEmpty());
}

TEST(Resources, WithMpsAreSharesAndNotForInstances) {
  auto options = options_from("sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}");
  options.mps_root = "/run/nvidia/mps";
  EXPECT_EQ(offer_of(without_mig(), options).resources[0].use, AllocationMode::Shares);
  auto machine = offered_machine;
  machine.gpus.erase(machine.gpus.begin(), machine.gpus.begin() + 2);
  options.mig_strategy = options::MigStrategy::Single;
  EXPECT_THAT(refused(machine, options), HasSubstr("does not run on MIG instances"));
}

TEST(OffersGpu, FindsDevicesOfAGpuByItsAddress) {
  auto offer = offer_of(without_mig(), {});
  const auto first = offered_machine.gpus[0].pci;
  EXPECT_TRUE(offers_gpu(offer, first));
  EXPECT_FALSE(offers_gpu(offer, {.bus = 0x77}));
  for (auto& resource : offer.resources)
    std::erase_if(resource.devices,
                  [](const auto& device) { return device.gpu == offered_machine.gpus[0].uuid; });
  EXPECT_FALSE(offers_gpu(offer, first));
  EXPECT_TRUE(offers_gpu(offer, offered_machine.gpus[1].pci));
  offer.shared.cards.push_back({.gpu = offered_machine.gpus[0].uuid});
  EXPECT_TRUE(offers_gpu(offer, first)) << "a pod can get a share of it";
}

TEST(OffersGpu, LeavesOutTheNamedInstances) {
  Offer offer{.resources = {{.name = "nvidia.com/mig-1g.18gb",
                             .devices = {{.id = "MIG-1", .gpu = {"GPU-a"}, .mig = {"MIG-1"}}}}},
              .uses = {{.gpu = {"GPU-a"}, .pci = {.bus = 0x3b}}}};
  const std::vector<std::string> kept{"MIG-1"};
  EXPECT_TRUE(offers_gpu(offer, {.bus = 0x3b}));
  EXPECT_FALSE(offers_gpu(offer, {.bus = 0x3b}, kept));
}

options::Options gke(options::GkeConfig config = {}) {
  return {.program = options::Program::Gke, .gke_config = std::move(config)};
}

TEST(GkeResources, AreNamedByTheirNodes) {
  auto machine = without_mig();
  machine.gpus[1].minor = 5;
  const auto offer = offer_of(machine, gke());
  ASSERT_EQ(offer.resources.size(), 1U);
  EXPECT_THAT(ids(offer.resources[0]), ElementsAre("nvidia0", "nvidia5", "nvidia2"));
}

TEST(GkeResources, AreSharedByClients) {
  const auto offer = offer_of(
      without_mig(), gke({.sharing = options::SharingKind::TimeSlicing, .clients_per_gpu = 2}));
  EXPECT_THAT(ids(offer.resources[0]),
              ElementsAre("nvidia0/vgpu0", "nvidia0/vgpu1", "nvidia1/vgpu0", "nvidia1/vgpu1",
                          "nvidia2/vgpu0", "nvidia2/vgpu1"));
  EXPECT_TRUE(offer.resources[0].only_one);
}

TEST(GkeResources, WithAPartitionSizeNeedEveryGpuDividedInFull) {
  auto machine = offered_machine;
  machine.gpus.erase(machine.gpus.begin(), machine.gpus.begin() + 2);
  EXPECT_THAT(refused(machine, gke({.partition_size = "1g.18gb"})),
              HasSubstr("must be divided into 7 of 1g.18gb"));
  EXPECT_THAT(refused(machine, gke({.partition_size = "9g.1gb"})), HasSubstr("not a size"));
  for (auto& mig : machine.gpus[0].mig.instances) mig.profile = "3g.71gb";
  EXPECT_THAT(ids(offer_of(machine, gke({.partition_size = "3g.71gb",
                                         .sharing = options::SharingKind::TimeSlicing,
                                         .clients_per_gpu = 1}))
                      .resources[0]),
              ElementsAre("nvidia2/gi7/vgpu0", "nvidia2/gi8/vgpu0"));
}

}  // namespace
}  // namespace gantry::resources
