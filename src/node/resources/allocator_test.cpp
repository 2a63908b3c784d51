// SPDX-License-Identifier: Apache-2.0
#include "node/resources/allocator.hpp"

#include "container/plan/machine_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace gantry::resources {
namespace {

using model::ContainerAllocateResponse;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;

const model::Inventory test_machine = plan::machine_for_test();
const std::string first_gpu = test_machine.gpus[0].uuid.text;
const std::string second_gpu = test_machine.gpus[1].uuid.text;
const std::string first_instance = test_machine.gpus[2].mig.instances[0].uuid.text;

options::Options by(options::ListStrategy strategy) {
  return {.list_strategies = {strategy}};
}

Result<Allocator> make(const options::Options& options,
                       const model::Inventory& machine = test_machine) {
  GANTRY_TRY(const auto offer, resources(machine, options));
  return Allocator::make(machine, options, offer, {});
}

Result<ContainerAllocateResponse> ask(const options::Options& options,
                                      const std::vector<std::string>& ids,
                                      std::string_view resource = "nvidia.com/gpu",
                                      const model::Inventory& machine = test_machine) {
  GANTRY_TRY(const auto answers, make(options, machine));
  return answers.answer(resource, ids);
}

ContainerAllocateResponse given(const options::Options& options,
                                const std::vector<std::string>& ids,
                                std::string_view resource = "nvidia.com/gpu",
                                const model::Inventory& machine = test_machine) {
  auto answer = ask(options, ids, resource, machine);
  EXPECT_TRUE(answer.ok()) << answer.error().text();
  return answer.ok() ? *std::move(answer) : ContainerAllocateResponse{};
}

std::vector<std::string> paths(const ContainerAllocateResponse& answer) {
  std::vector<std::string> result;
  for (const auto& node : answer.nodes) result.push_back(node.path);
  return result;
}

std::string everything(const ContainerAllocateResponse& answer) {
  std::string text;
  for (const auto& [key, value] : answer.env) text += fmt::format("{}={}\n", key, value);
  for (const auto& [key, value] : answer.annotations) text += fmt::format("{}={}\n", key, value);
  for (const auto& mount : answer.mounts)
    text += fmt::format("{}:{}\n", mount.host_path, mount.container_path);
  for (const auto& node : answer.nodes) text += fmt::format("{}:{}\n", node.host_path, node.path);
  for (const auto& name : answer.cdi_devices) text += name + "\n";
  return text;
}

TEST(Answer, ByCriNamesCdiDevicesOnly) {
  const auto answer = given(by(options::ListStrategy::CdiCri), {second_gpu, first_gpu});
  EXPECT_EQ(answer, (ContainerAllocateResponse{.cdi_devices = {"nvidia.com/gpu=" + first_gpu,
                                                               "nvidia.com/gpu=" + second_gpu}}));
}

TEST(Answer, ByIndexNamesThemSo) {
  auto options = by(options::ListStrategy::CdiCri);
  options.id_strategy = options::IdStrategy::Index;
  options.mig_strategy = options::MigStrategy::Mixed;
  EXPECT_THAT(given(options, {second_gpu}).cdi_devices, ElementsAre("nvidia.com/gpu=1"));
  EXPECT_THAT(given(options, {first_instance}, "nvidia.com/mig-1g.18gb").cdi_devices,
              ElementsAre("nvidia.com/gpu=2:0"));
}

TEST(Answer, ByAnnotationHasAKeyOfItsOwnForEachResource) {
  auto options = by(options::ListStrategy::CdiAnnotations);
  options.mig_strategy = options::MigStrategy::Mixed;
  const auto whole = given(options, {first_gpu});
  const auto part = given(options, {first_instance}, "nvidia.com/mig-1g.18gb");
  ASSERT_EQ(whole.annotations.size(), 1U);
  EXPECT_THAT(whole.annotations.begin()->first,
              testing::StartsWith("cdi.k8s.io/nvidia-device-plugin_"));
  EXPECT_EQ(whole.annotations.begin()->second, "nvidia.com/gpu=" + first_gpu);
  EXPECT_NE(whole.annotations.begin()->first, part.annotations.begin()->first);
  EXPECT_THAT(whole.cdi_devices, IsEmpty());
}

TEST(Answer, ByEnvironmentListsTheDevices) {
  const auto answer = given(by(options::ListStrategy::EnvVar), {first_gpu, second_gpu});
  EXPECT_THAT(answer.env,
              ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", first_gpu + "," + second_gpu)));
  EXPECT_THAT(answer.nodes, IsEmpty());
}

TEST(Answer, ByVolumeMountsHasOneForEachDevice) {
  const auto answer = given(by(options::ListStrategy::VolumeMounts), {first_gpu});
  EXPECT_THAT(answer.env,
              ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "/var/run/nvidia-container-devices")));
  ASSERT_EQ(answer.mounts.size(), 1U);
  EXPECT_EQ(answer.mounts[0].host_path, "/dev/null");
  EXPECT_EQ(answer.mounts[0].container_path, "/var/run/nvidia-container-devices/" + first_gpu);
}

TEST(Answer, DirectHasNodesMountsAndEnvironment) {
  const auto answer = given(by(options::ListStrategy::Direct), {first_gpu});
  EXPECT_THAT(paths(answer), ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm",
                                         "/dev/nvidia-uvm-tools", "/dev/nvidia0"));
  EXPECT_THAT(answer.env, Contains(Pair("NVIDIA_VISIBLE_DEVICES", "void")));
  EXPECT_THAT(everything(answer),
              AllOf(HasSubstr("/var/lib/gantry/driver/current/sets/compute+utility+video/lib64:"
                              "/usr/local/nvidia/lib64"),
                    HasSubstr(":/usr/bin/nvidia-smi")));
  for (const auto& node : answer.nodes) EXPECT_EQ(node.permissions, "rw");
}

TEST(Answer, WithoutAnyStrategyIsDirect) {
  EXPECT_EQ(given({}, {first_gpu}), given(by(options::ListStrategy::Direct), {first_gpu}));
}

// The kubelet replays an answer after the driver was upgraded.
TEST(Answer, NamesNoVersionOfTheDriverWhateverTheStrategy) {
  for (const auto strategy : {options::ListStrategy::Direct, options::ListStrategy::CdiCri,
                              options::ListStrategy::CdiAnnotations, options::ListStrategy::EnvVar,
                              options::ListStrategy::VolumeMounts}) {
    auto options = by(strategy);
    options.pass_device_specs = true;
    options.direct_capabilities = "all";
    EXPECT_THAT(everything(given(options, {first_gpu, second_gpu})), Not(HasSubstr("580.159.04")));
  }
}

TEST(Answer, DirectTakesOnlyWhatIsBelowThePreparedDirectory) {
  auto options = by(options::ListStrategy::Direct);
  options.direct_capabilities = "all";
  for (const auto& mount : given(options, {first_gpu}).mounts)
    EXPECT_THAT(mount.host_path, HasSubstr("/var/lib/gantry/driver/current/"));
  EXPECT_THAT(everything(given(options, {first_gpu})),
              HasSubstr("/var/lib/gantry/driver/current/config/etc/OpenCL/vendors/nvidia.icd"));
  EXPECT_THAT(everything(given(options, {first_gpu})), Not(HasSubstr("/dev/dri")))
      << "whose numbers change from boot to boot";
}

TEST(Answer, OfAMigInstanceHasItsCapabilityNodes) {
  auto options = by(options::ListStrategy::Direct);
  options.mig_strategy = options::MigStrategy::Mixed;
  EXPECT_THAT(
      paths(given(options, {first_instance}, "nvidia.com/mig-1g.18gb")),
      ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia2",
                  "/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"));
}

TEST(Answer, PassesDeviceSpecsBesideTheStrategy) {
  auto options = by(options::ListStrategy::EnvVar);
  options.pass_device_specs = true;
  const auto answer = given(options, {first_gpu});
  EXPECT_THAT(paths(answer),
              ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                          "/dev/nvidia-modeset", "/dev/nvidia0"));
  EXPECT_THAT(answer.mounts, IsEmpty());
  options.dev_root = "/run/nvidia/driver";
  EXPECT_EQ(given(options, {first_gpu}).nodes[0].host_path, "/run/nvidia/driver/dev/nvidiactl");
}

TEST(Answer, OfTwoReplicasOfOneGpuHasItOnce) {
  options::Options options = by(options::ListStrategy::CdiCri);
  options.sharing = {.kind = options::SharingKind::TimeSlicing,
                     .resources = {{.name = "nvidia.com/gpu", .replicas = 3}}};
  EXPECT_THAT(given(options, {first_gpu + "::0", first_gpu + "::2"}).cdi_devices,
              ElementsAre("nvidia.com/gpu=" + first_gpu));
  options.sharing.only_one = true;
  const auto refused = ask(options, {first_gpu + "::0", second_gpu + "::2"});
  EXPECT_EQ(refused.error().code(), Errc::Invalid);
  EXPECT_THAT(refused.error().text(), HasSubstr("maximum request size for shared resources is 1"));
}

TEST(Answer, ToAnUnknownIdSaysWhatIsKnown) {
  const auto refused = ask(by(options::ListStrategy::CdiCri), {"GPU-gone"});
  EXPECT_EQ(refused.error().code(), Errc::NotFound);
  EXPECT_THAT(refused.error().text(),
              AllOf(HasSubstr("`GPU-gone`"), HasSubstr(first_gpu), HasSubstr("delete the pod")));
  EXPECT_FALSE(ask(by(options::ListStrategy::CdiCri), {first_gpu}, "nvidia.com/other").ok());
  EXPECT_FALSE(ask(by(options::ListStrategy::CdiCri), {}).ok());
}

TEST(Answer, WithoutItsNodeSaysHowToMakeIt) {
  auto machine = test_machine;
  std::erase_if(machine.nodes, [](const auto& node) { return node.path == "/dev/nvidia0"; });
  const auto refused =
      ask(by(options::ListStrategy::Direct), {first_gpu}, "nvidia.com/gpu", machine);
  EXPECT_THAT(refused.error().text(), HasSubstr("gantry doctor --fix"));
  EXPECT_TRUE(ask(by(options::ListStrategy::Direct), {second_gpu}, "nvidia.com/gpu", machine).ok());
}

TEST(Answer, BringsWhatIsEnabledAndThere) {
  auto machine = test_machine;
  machine.nodes.push_back(plan::node_for_test("/dev/gdrdrv", 240, 0));
  machine.nodes.push_back(plan::node_for_test("/dev/nvidia-caps-imex-channels/channel0", 241, 0));
  auto options = by(options::ListStrategy::CdiCri);
  options.gdrcopy = options.gds = true;
  options.imex_channels = {0};
  EXPECT_THAT(given(options, {first_gpu}, "nvidia.com/gpu", machine).cdi_devices,
              ElementsAre("nvidia.com/gpu=" + first_gpu, "nvidia.com/gdrcopy=all",
                          "nvidia.com/imex-channel=0"));
  EXPECT_THAT(make(options, machine)->notes(), Contains(HasSubstr("GPUDirect Storage")));
  options.list_strategies = {options::ListStrategy::EnvVar};
  EXPECT_THAT(given(options, {first_gpu}, "nvidia.com/gpu", machine).env,
              AllOf(Contains(Pair("NVIDIA_GDRCOPY", "enabled")), Not(Contains(Key("NVIDIA_GDS"))),
                    Contains(Pair("NVIDIA_IMEX_CHANNELS", "0"))));
  options.list_strategies = {options::ListStrategy::Direct};
  EXPECT_THAT(paths(given(options, {first_gpu}, "nvidia.com/gpu", machine)),
              AllOf(Contains("/dev/gdrdrv"), Contains("/dev/nvidia-caps-imex-channels/channel0")));
}

TEST(Answer, WithoutARequiredChannelIsNone) {
  auto options = by(options::ListStrategy::CdiCri);
  options.imex_channels = {0};
  EXPECT_TRUE(make(options).ok());
  options.imex_required = true;
  EXPECT_THAT(make(options).error().text(), HasSubstr("channel 0"));
}

TEST(Answer, UnderMpsLeadsToItsDaemon) {
  auto options = by(options::ListStrategy::CdiCri);
  options.mps_root = "/run/nvidia/mps";
  options.sharing = {.kind = options::SharingKind::Mps,
                     .rename_by_default = true,
                     .resources = {{.name = "nvidia.com/gpu", .replicas = 3}}};
  const auto answer = given(options, {first_gpu + "::1"}, "nvidia.com/gpu.shared");
  EXPECT_THAT(answer.env,
              ElementsAre(Pair("CUDA_MPS_PIPE_DIRECTORY", "/mps/nvidia.com/gpu.shared/pipe")));
  EXPECT_THAT(everything(answer),
              AllOf(HasSubstr("/run/nvidia/mps/nvidia.com/gpu.shared/pipe:/mps/"),
                    HasSubstr("/run/nvidia/mps/shm:/dev/shm")));
}

TEST(GkeAnswer, HasNodesAndItsTwoMounts) {
  const auto answer = given({.program = options::Program::Gke}, {"nvidia1"});
  EXPECT_THAT(paths(answer),
              ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                          "/dev/nvidia-modeset", "/dev/nvidia1"));
  EXPECT_EQ(answer.nodes[0].permissions, "mrw");
  ASSERT_EQ(answer.mounts.size(), 2U);
  EXPECT_EQ(answer.mounts[0].host_path, "/home/kubernetes/bin/nvidia");
  EXPECT_EQ(answer.mounts[0].container_path, "/usr/local/nvidia");
  EXPECT_THAT(answer.mounts[0].options, Contains("ro"));
  EXPECT_EQ(answer.mounts[1].container_path, "/etc/vulkan/icd.d");
  EXPECT_THAT(answer.env, IsEmpty());
}

TEST(GkeAnswer, UnderMpsHasTheClientsPartOfTimeAndMemory) {
  auto machine = test_machine;
  machine.gpus.resize(1);
  machine.gpus[0].memory_bytes = std::uint64_t{40'000} << 20U;
  const options::Options options{
      .program = options::Program::Gke,
      .gke_config = {.sharing = options::SharingKind::Mps, .clients_per_gpu = 4}};
  const auto answer = given(options, {"nvidia0/vgpu0", "nvidia0/vgpu3"}, "nvidia.com/gpu", machine);
  EXPECT_THAT(answer.env, ElementsAre(Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50"),
                                      Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=20000M")));
  EXPECT_THAT(everything(answer), HasSubstr("/tmp/nvidia-mps:/tmp/nvidia-mps"));
}

// A machine as large as they come, with the most that an answer can hold.
// The same cards, numbered the other way round.
model::Inventory renumbered() {
  auto machine = test_machine;
  std::swap(machine.gpus[0].uuid, machine.gpus[1].uuid);
  return machine;
}

TEST(EarlierAnswer, IsRightWhileTheNodesAreTheSameGpus) {
  const auto earlier = given(by(options::ListStrategy::Direct), {first_gpu});
  const auto answers = make(by(options::ListStrategy::Direct));
  ASSERT_TRUE(answers.ok());
  EXPECT_TRUE(answers->check_stored_answer("nvidia.com/gpu", std::vector{first_gpu}, earlier).ok());
}

TEST(EarlierAnswer, IsWrongWhenItsNodeIsAnotherGpuNow) {
  const auto earlier = given(by(options::ListStrategy::Direct), {first_gpu});
  for (const auto strategy : {options::ListStrategy::Direct, options::ListStrategy::CdiCri}) {
    const auto answers = make(by(strategy), renumbered());
    ASSERT_TRUE(answers.ok());
    const auto status =
        answers->check_stored_answer("nvidia.com/gpu", std::vector{first_gpu}, earlier);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().text(), AllOf(HasSubstr("/dev/nvidia0"), HasSubstr(second_gpu),
                                             HasSubstr("Delete the pod")));
  }
}

TEST(EarlierAnswer, WithNamesAloneIsRightWhateverTheNumbers) {
  const auto earlier = given(by(options::ListStrategy::CdiCri), {first_gpu});
  const auto answers = make(by(options::ListStrategy::CdiCri), renumbered());
  ASSERT_TRUE(answers.ok());
  EXPECT_TRUE(answers->check_stored_answer("nvidia.com/gpu", std::vector{first_gpu}, earlier).ok());
  EXPECT_TRUE(
      answers->check_stored_answer("nvidia.com/other", std::vector{first_gpu}, earlier).ok());
  EXPECT_TRUE(
      answers->check_stored_answer("nvidia.com/gpu", std::vector<std::string>{"GPU-gone"}, earlier)
          .ok());
}

TEST(Answer, ComesFromMemoryInMicroseconds) {
  auto machine = test_machine;
  std::vector<std::string> ids;
  for (int i = 3; i < 8; ++i) {
    machine.gpus.push_back(plan::gpu_for_test(i));
    machine.nodes.push_back(
        plan::node_for_test(fmt::format("/dev/nvidia{}", i), 195, static_cast<std::uint32_t>(i)));
  }
  for (const auto& gpu : machine.gpus) ids.push_back(gpu.uuid.text);
  const auto answers = make(by(options::ListStrategy::Direct), machine);
  ASSERT_TRUE(answers.ok());
  auto least = std::chrono::nanoseconds::max();
  for (int round = 0; round < 300; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto answer = answers->answer("nvidia.com/gpu", ids);
    least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - start);
    ASSERT_TRUE(answer.ok());
  }
// Not __OPTIMIZE__ alone: fmt sets it for itself, and a precompiled header keeps that.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
  constexpr std::chrono::microseconds kTimeLimit(20);
#else
  constexpr std::chrono::microseconds kTimeLimit(1000);  // with sanitizers
#endif
  EXPECT_LT(least, kTimeLimit);
}

}  // namespace
}  // namespace gantry::resources
