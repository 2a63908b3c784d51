// SPDX-License-Identifier: Apache-2.0
// GPUs in shares: tokens for the kubelet, and answers that name a slot and no GPU.
#include "base/core/text.hpp"
#include "container/plan/machine_for_test.hpp"
#include "node/resources/allocator.hpp"
#include "node/resources/offer_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::resources {
namespace {

using model::AllocationMode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kH200 = 143'771;  // MiB, as NVML tells them: 140 whole GiB

model::Inventory machine_in_mib(std::vector<std::uint64_t> cards) {
  auto machine = plan::machine_for_test();
  machine.gpus[2].mig = {.current = model::MigMode::Disabled};
  machine.gpus.resize(cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) machine.gpus[i].memory_bytes = cards[i] << 20U;
  return machine;
}

options::Options sharing(options::MemoryUnit unit, std::vector<options::ListStrategy> strategies = {
                                                       options::ListStrategy::CdiCri}) {
  options::Options options{.list_strategies = std::move(strategies)};
  options.shares = {.all = true, .unit = unit, .slots = 4};
  return options;
}

std::vector<std::string> offered_names(const Offer& offer) {
  std::vector<std::string> result;
  for (const auto& resource : offer.resources)
    result.push_back(fmt::format("{} x{}", resource.name, resource.devices.size()));
  return result;
}

model::ContainerAllocateResponse answered(const options::Options& options,
                                          const std::vector<std::string>& ids) {
  const auto machine = machine_in_mib({kH200, kH200});
  const auto answers = Allocator::make(machine, options, offer_of(machine, options), {});
  EXPECT_TRUE(answers.ok());
  const auto answer = answers->answer(kMemoryResource, ids);
  EXPECT_TRUE(answer.ok()) << answer.error().text();
  return answer.ok() ? *answer : model::ContainerAllocateResponse{};
}

TEST(Tokens, AreOneForEachWholeGibOfEachGpu) {
  EXPECT_THAT(
      offered_names(offer_of(machine_in_mib({kH200, kH200}), sharing(options::MemoryUnit::GiB))),
      ElementsAre("aliyun.com/gpu-mem x280", "gantry.dev/share x8", "nvidia.com/gpu x8"));
}

TEST(Tokens, OfGpusOfDifferentSizeAddUp) {
  EXPECT_THAT(offered_names(offer_of(machine_in_mib({kH200, 16'384, 24'000}),
                                     sharing(options::MemoryUnit::GiB))),
              ElementsAre("aliyun.com/gpu-mem x179", "gantry.dev/share x12", "nvidia.com/gpu x12"));
}

TEST(Tokens, InMibAreSlotsAlone) {
  const auto offer = offer_of(machine_in_mib({kH200, kH200}), sharing(options::MemoryUnit::MiB));
  EXPECT_THAT(offered_names(offer), ElementsAre("gantry.dev/share x8", "nvidia.com/gpu x8"));
  EXPECT_EQ(offer.shared.unit_mib, 1U);
  EXPECT_EQ(offer.shared.cards[1].mib, kH200);
}

TEST(Tokens, NameNoGpu) {
  const auto machine = machine_in_mib({kH200, kH200});
  for (const auto& resource : offer_of(machine, sharing(options::MemoryUnit::GiB)).resources) {
    EXPECT_TRUE(resource.tokens);
    EXPECT_EQ(resource.use, AllocationMode::Shares);
    for (const auto& device : resource.devices) {
      EXPECT_TRUE(device.gpu.text.empty() && !device.numa_node);
      EXPECT_FALSE(contains(device.id, machine.gpus[0].uuid.text.substr(0, 12)));
      EXPECT_LE(device.id.size(), 63U);
    }
  }
}

TEST(Tokens, OfSomeGpusLeaveNvidiaComGpuToTheWholeOnes) {
  const auto options = options_from("gantry: {gpus: [{devices: [0], use: shares}]}");
  const auto offer = offer_of(machine_in_mib({kH200, kH200, kH200}), options);
  EXPECT_THAT(offered_names(offer),
              ElementsAre("aliyun.com/gpu-mem x140", "gantry.dev/share x32", "nvidia.com/gpu x2"));
  EXPECT_FALSE(offer.resources[2].tokens);
  EXPECT_EQ(offer.uses[0].use, AllocationMode::Shares);
  EXPECT_EQ(offer.uses[1].use, AllocationMode::Whole);
}

TEST(Tokens, WithAllSharedARuleMayKeepAGpuWhole) {
  auto options = options_from("gantry: {gpus: [{devices: [1], use: whole}]}");
  options.shares.all = true;
  EXPECT_THAT(offered_names(offer_of(machine_in_mib({kH200, kH200}), options)),
              ElementsAre("aliyun.com/gpu-mem x140", "gantry.dev/share x32", "nvidia.com/gpu x1"));
}

TEST(Tokens, GoWithACardThatIsHeldBack) {
  auto offer = offer_of(machine_in_mib({kH200, 16'384}), sharing(options::MemoryUnit::GiB));
  offer.shared.cards.erase(offer.shared.cards.begin());
  rebuild_tokens(offer);
  EXPECT_THAT(offered_names(offer),
              ElementsAre("aliyun.com/gpu-mem x16", "gantry.dev/share x4", "nvidia.com/gpu x4"));
  offer.shared.cards.clear();
  rebuild_tokens(offer);
  EXPECT_THAT(offer.resources, IsEmpty());
}

TEST(Tokens, OfAGpuInMigModeAreRefusedWithWhatHelps) {
  auto machine = plan::machine_for_test();  // GPU 2 is in MIG mode
  const auto refused = resources(machine, sharing(options::MemoryUnit::GiB));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Invalid);
  EXPECT_THAT(refused.error().text(), HasSubstr("nvidia-smi -i 2 -mig 0"));
}

TEST(Tokens, AndReplicasExcludeEachOther) {
  auto options =
      options_from("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}");
  options.shares.all = true;
  const auto checked = check(options);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().text(), HasSubstr("exclude each other"));
}

TEST(Tokens, AGpuOfUnknownSizeIsNotOffered) {
  auto machine = machine_in_mib({kH200, kH200});
  machine.gpus[0].memory_bytes.reset();
  const auto offer = offer_of(machine, sharing(options::MemoryUnit::GiB));
  EXPECT_THAT(offered_names(offer)[0], "aliyun.com/gpu-mem x140");
  EXPECT_THAT(offer.notes, ElementsAre(HasSubstr("memory size")));
}

TEST(Slots, AreNamedByTheSetOfIdsWhateverItsOrder) {
  const std::vector<std::string> ids{"gib-00001", "gib-00002"};
  const std::vector<std::string> turned{"gib-00002", "gib-00001"};
  const std::vector<std::string> less{"gib-00001"};
  EXPECT_EQ(slot_name(kMemoryResource, ids), slot_name(kMemoryResource, turned));
  EXPECT_NE(slot_name(kMemoryResource, ids), slot_name(kMemoryResource, less));
  EXPECT_NE(slot_name(kMemoryResource, ids), slot_name(kShareResource, ids));
}

TEST(Slots, AreTheWholeAnswer) {
  const std::vector<std::string> ids{"gib-00001", "gib-00002"};
  const auto name = "gantry.dev/share=" + slot_name(kMemoryResource, ids);
  const auto answer = answered(sharing(options::MemoryUnit::GiB), ids);
  EXPECT_EQ(answer, (model::ContainerAllocateResponse{.cdi_devices = {name}}));
  // Without CDI the engine's NVIDIA runtime is told.
  for (const auto strategy : {options::ListStrategy::Direct, options::ListStrategy::EnvVar}) {
    const auto told = answered(sharing(options::MemoryUnit::GiB, {strategy}), ids);
    EXPECT_EQ(told, (model::ContainerAllocateResponse{.env = {{"NVIDIA_VISIBLE_DEVICES", name}}}));
  }
}

TEST(Slots, AnEarlierAnswerIsRightWhileItNamesTheSlot) {
  const auto machine = machine_in_mib({kH200, kH200});
  const auto options = sharing(options::MemoryUnit::GiB);
  const auto answers = Allocator::make(machine, options, offer_of(machine, options), {});
  ASSERT_TRUE(answers.ok());
  const std::vector<std::string> ids{"slot-00003"};
  const auto answer = answers->answer("nvidia.com/gpu", ids);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answers->check_stored_answer("nvidia.com/gpu", ids, *answer).ok());
  // As from the time before the GPU was in shares.
  const model::ContainerAllocateResponse whole{.nodes = {{.path = "/dev/nvidia0"}}};
  const auto wrong = answers->check_stored_answer("nvidia.com/gpu", ids, whole);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code(), Errc::Denied);
  EXPECT_THAT(wrong.error().text(), HasSubstr("Delete the pod"));
}

TEST(Slots, OfGpusharesPluginAreItsDefault) {
  const auto nothing = [](std::string_view) { return std::nullopt; };
  const auto no_file = [](const std::string&) -> Result<std::string> {
    return Error(Errc::NotFound, "no file");
  };
  const std::vector<std::string> flags{
      "-logtostderr",        "--v=5",           "--memory-unit=MiB",   "--mps=false",
      "--health-check=true", "--query-kubelet", "--kubelet-port=10250"};
  const auto read = options::read_options(options::Program::Gpushare, flags, nothing, no_file);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_TRUE(read->options.shares.all);
  EXPECT_EQ(read->options.shares.unit, options::MemoryUnit::MiB);
  EXPECT_FALSE(
      options::read_options(options::Program::Agent, {}, nothing, no_file)->options.shares.all);
}

}  // namespace
}  // namespace gantry::resources
