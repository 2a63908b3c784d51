// SPDX-License-Identifier: Apache-2.0
#include "container/publish/generate_spec.hpp"

#include "container/cdi/spec_text.hpp"
#include "container/plan/capabilities.hpp"
#include "gpu/probe/snapshot.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gantry::publish {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kDefault = "compute,utility,video,graphics,display,ngx";

SpecOptions options_with(std::string_view capabilities = kDefault) {
  SpecOptions options;
  options.capabilities = *plan::parse_capabilities(capabilities);
  options.plan.groups = plan::AdditionalGroups::DriverNodes;
  return options;
}

Result<GeneratedSpec> spec_of(const test::Machine& machine, const SpecOptions& options) {
  GANTRY_TRY(const auto inventory,
             probe::snapshot(machine.host(), {.nvml = probe::NvmlUse::ForMig}));
  return generate_spec(inventory, options);
}

std::vector<std::string> device_names(const cdi::Spec& spec) {
  std::vector<std::string> names;
  for (const auto& device : spec.devices) names.push_back(device.name);
  return names;
}

// GANTRY_GOLDEN=write refreshes the files.
void expect_golden(const std::string& name, const std::string& text) {
  const auto path = test::source_dir() + "/tests/golden/cdi/" + name;
  const char* mode = std::getenv("GANTRY_GOLDEN");
  if (mode != nullptr && std::string_view(mode) == "write") {
    std::ofstream(path) << text;
    return;
  }
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path << "; GANTRY_GOLDEN=write refreshes it";
}

std::vector<std::string> node_paths(const cdi::Edits& edits) {
  std::vector<std::string> paths;
  for (const auto& node : edits.device_nodes) paths.push_back(node.path);
  return paths;
}

struct OtherKindCase {
  SpecKind kind;
  std::string_view name;  // of the kind
  std::vector<std::string> nodes;
};

// What a machine has beside its GPUs, each as a kind of its own.
TEST(Spec, KindsBesideGpusHaveTheirNodes) {
  const test::Machine machine("h200x8-fabric");
  const std::vector<OtherKindCase> all{
      {SpecKind::Gds, "nvidia.com/gds", {"/dev/nvidia-fs0", "/dev/nvidia-fs1"}},
      {SpecKind::Gdrcopy, "nvidia.com/gdrcopy", {"/dev/gdrdrv"}},
      {SpecKind::Mofed,
       "nvidia.com/mofed",
       {"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"}},
      {SpecKind::Nvswitch,
       "nvidia.com/nvswitch",
       {"/dev/nvidia-nvswitch0", "/dev/nvidia-nvswitch1", "/dev/nvidia-nvswitch2",
        "/dev/nvidia-nvswitch3", "/dev/nvidia-nvswitchctl"}}};
  for (const auto& [kind, name, nodes] : all) {
    auto options = options_with();
    options.kind = kind;
    const auto made = spec_of(machine, options);
    ASSERT_TRUE(made.ok()) << name << ": " << made.error().text();
    EXPECT_EQ(made->spec.kind, name);
    EXPECT_THAT(device_names(made->spec), ElementsAre("all")) << name;
    EXPECT_THAT(node_paths(made->spec.devices[0].edits),
                ::testing::UnorderedElementsAreArray(nodes))
        << name;
  }
}

TEST(Spec, StorageBringsItsConfiguration) {
  auto options = options_with();
  options.kind = SpecKind::Gds;
  const auto made = spec_of(test::Machine("h200x8-fabric"), options);
  ASSERT_TRUE(made.ok()) << made.error().text();
  std::vector<std::string> mounts;
  for (const auto& mount : made->spec.devices[0].edits.mounts)
    mounts.push_back(mount.container_path);
  EXPECT_THAT(mounts, ElementsAre("/etc/cufile.json", "/run/udev"));
}

TEST(Spec, ImexChannelsAreDevicesByNumber) {
  auto options = options_with();
  options.kind = SpecKind::Imex;
  const auto made = spec_of(test::Machine("h200x8-fabric"), options);
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(made->spec.kind, "nvidia.com/imex-channel");
  EXPECT_THAT(device_names(made->spec), ElementsAre("0", "1", "all"));
  EXPECT_THAT(node_paths(made->spec.devices[1].edits),
              ElementsAre("/dev/nvidia-caps-imex-channels/channel1"));
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, TheSpecificationIsWhatItWas) {
  const std::string name = GetParam();
  if (name == "a100x8" && !test::Machine::has_libraries()) GTEST_SKIP() << "no simulated libraries";
  const test::Machine machine(name);
  const auto made = spec_of(machine, options_with());
  ASSERT_TRUE(made.ok()) << made.error().text();
  expect_golden(name + ".yaml", cdi::to_text(made->spec, cdi::Format::Yaml));
}

INSTANTIATE_TEST_SUITE_P(Machines, Golden, ::testing::Values("h200", "a100x8", "k80", "t4x4"),
                         [](const auto& param) { return std::string(param.param); });

TEST(Spec, OneHookIsWhatItWas) {
  const test::Machine machine("h200");
  auto options = options_with("compute,utility");
  options.plan.flavour = plan::Flavour::OneHook;
  expect_golden("h200-one-hook.yaml",
                cdi::to_text(spec_of(machine, options)->spec, cdi::Format::Yaml));
}

TEST(Spec, Compat32BringsThe32BitLibraries) {
  const test::Machine machine("t4x4");
  expect_golden("t4x4-all-capabilities.yaml",
                cdi::to_text(spec_of(machine, options_with("all"))->spec, cdi::Format::Yaml));
}

TEST(Spec, DevicesAreNamedByEachStrategy) {
  const test::Machine machine("h200");
  auto options = options_with();
  options.names = {DeviceNameStrategy::TypeIndex};
  EXPECT_THAT(device_names(spec_of(machine, options)->spec), ElementsAre("gpu0", "all"));
  options.all_device = false;
  EXPECT_THAT(device_names(spec_of(machine, options)->spec), ElementsAre("gpu0"));
}

TEST(Spec, InstancesStandForTheirGpu) {
  if (!test::Machine::has_libraries()) GTEST_SKIP() << "no simulated libraries";
  const test::Machine machine("a100x8");
  auto options = options_with();
  options.names = {DeviceNameStrategy::Index};
  const auto names = device_names(spec_of(machine, options)->spec);
  EXPECT_THAT(names, Contains("0:0"));
  EXPECT_THAT(names, Not(Contains("0")));
  EXPECT_THAT(names, Contains("2"));
  options.devices = {"0"};
  EXPECT_THAT(device_names(spec_of(machine, options)->spec), ElementsAre("0", "all"));
}

TEST(Spec, NoneIsADeviceOfItsOwn) {
  const test::Machine machine("h200");
  auto options = options_with();
  options.devices = {"none"};
  const auto made = spec_of(machine, options);
  EXPECT_THAT(device_names(made->spec), ElementsAre("none"));
  EXPECT_FALSE(made->spec.devices[0].edits.empty());
}

TEST(Spec, AMachineWithoutGpusGivesNone) {
  const test::Machine machine("nouveau");
  const auto made = spec_of(machine, options_with());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Errc::NotFound);
}

TEST(Spec, ALostGpuIsLeftOutWithAWord) {
  const test::Machine machine("fallen-off");
  const auto made = spec_of(machine, options_with());
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_THAT(device_names(made->spec), Not(Contains("3")));
  EXPECT_THAT(made->notes, Contains(HasSubstr("GPU 3")));
}

TEST(Spec, SwitchesAndChannelsAreKindsOfTheirOwn) {
  test::Machine machine("h200x8");
  machine.node("/dev/nvidia-caps-imex-channels/channel0 c 505 0 0666 0 0");
  machine.node("/dev/nvidia-caps-imex-channels/channel7 c 505 7 0666 0 0");
  auto options = options_with();
  options.kind = SpecKind::Nvswitch;
  const auto switches = spec_of(machine, options);
  EXPECT_EQ(switches->spec.kind, "nvidia.com/nvswitch");
  EXPECT_EQ(switches->spec.devices[0].edits.device_nodes.size(), 5U);
  options.kind = SpecKind::Imex;
  EXPECT_THAT(device_names(spec_of(machine, options)->spec), ElementsAre("0", "7", "all"));
  options.devices = {"channel7"};
  EXPECT_THAT(device_names(spec_of(machine, options)->spec), ElementsAre("7", "all"));
  options.devices = {"9"};
  EXPECT_EQ(spec_of(machine, options).error().code(), Errc::NotFound);
}

TEST(Spec, StorageGdrcopyAndInfinibandAreFoundByTheirNodes) {
  test::Machine machine("h200x8");
  auto options = options_with();
  for (const auto kind : {SpecKind::Gds, SpecKind::Gdrcopy, SpecKind::Mofed}) {
    options.kind = kind;
    EXPECT_EQ(spec_of(machine, options).error().code(), Errc::NotFound);
  }
  machine.node("/dev/nvidia-fs0 c 504 0 0666 0 0").file("/etc/cufile.json", "{}");
  machine.file("/proc/driver/nvidia-fs/version", "").file("/run/udev/control", "");
  machine.node("/dev/gdrdrv c 503 0 0666 0 0");
  machine.node("/dev/infiniband/uverbs0 c 231 192 0666 0 0");
  machine.node("/dev/infiniband/rdma_cm c 10 58 0666 0 0");
  machine.node("/dev/infiniband/umad0 c 231 0 0600 0 0").file("/dev/infiniband/x", "");
  options.kind = SpecKind::Gds;
  const auto storage = spec_of(machine, options);
  ASSERT_TRUE(storage.ok()) << storage.error().text();
  EXPECT_EQ(storage->spec.devices[0].edits.mounts.size(), 2U);
  options.kind = SpecKind::Gdrcopy;
  EXPECT_EQ(spec_of(machine, options)->spec.devices[0].edits.device_nodes[0].path, "/dev/gdrdrv");
  options.kind = SpecKind::Mofed;
  EXPECT_EQ(spec_of(machine, options)->spec.devices[0].edits.device_nodes.size(), 2U);
}

TEST(Spec, ManagementHasEveryNodeButThoseOfSwitchesAndStorage) {
  const test::Machine machine("h200x8");
  auto options = options_with("utility");
  options.kind = SpecKind::Management;
  const auto made = spec_of(machine, options);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->spec.kind, "management.nvidia.com/gpu");
  const auto text = cdi::to_text(made->spec, cdi::Format::Yaml);
  EXPECT_THAT(text, HasSubstr("/dev/nvidia7"));
  EXPECT_THAT(text, HasSubstr("/dev/nvidia-caps/nvidia-cap1"));
  EXPECT_THAT(text, Not(HasSubstr("nvswitch")));
}

TEST(Spec, AnOlderVersionIsWrittenWithAWordOnWhatIsLost) {
  test::Machine machine("h200");
  machine.node("/dev/nvidia0 c 195 0 0660 0 44");
  auto options = options_with("compute,utility");
  const auto newest = spec_of(machine, options);
  EXPECT_THAT(cdi::to_text(newest->spec, cdi::Format::Yaml), HasSubstr("cdiVersion: 0.7.0"));
  EXPECT_THAT(newest->notes, Contains(HasSubstr("--target-version 0.5")));
  options.target_version = "0.5";
  const auto made = spec_of(machine, options);
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_THAT(cdi::to_text(made->spec, cdi::Format::Yaml), HasSubstr("cdiVersion: 0.5.0"));
  EXPECT_THAT(made->notes, Contains(HasSubstr("additionalGids")));
}

TEST(Spec, ModesAreNvidiasWords) {
  EXPECT_EQ(*parse_mode("imex"), SpecKind::Imex);
  EXPECT_EQ(parse_mode("csv").error().code(), Errc::Unsupported);
  EXPECT_EQ(parse_mode("best").error().code(), Errc::Invalid);
}

}  // namespace
}  // namespace gantry::publish
