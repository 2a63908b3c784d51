// SPDX-License-Identifier: Apache-2.0
#include "container/plan/edits.hpp"

#include "container/plan/machine_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

using enum model::Capability;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

model::ContainerRequest asking_for(std::vector<std::string> devices,
                                   std::vector<model::Capability> capabilities = {Utility,
                                                                                  Compute}) {
  return {.source = model::RequestSource::Environment,
          .devices = std::move(devices),
          .capabilities = std::move(capabilities)};
}

std::vector<std::string> node_paths(const model::ContainerEdits& edits) {
  std::vector<std::string> paths;
  for (const auto& node : edits.nodes) paths.push_back(node.path);
  return paths;
}

std::vector<std::string> places(const model::ContainerEdits& edits) {
  std::vector<std::string> paths;
  for (const auto& mount : edits.mounts) paths.push_back(mount.container_path);
  return paths;
}

TEST(Edits, NothingAskedForIsNothingGiven) {
  EXPECT_TRUE(edits_for(machine_for_test(), {}, {})->empty());
}

TEST(Edits, OneGpuGetsItsNodeAndTheControlNodes) {
  const auto edits = edits_for(machine_for_test(), asking_for({"1"}), {});
  ASSERT_TRUE(edits.ok());
  EXPECT_THAT(node_paths(*edits), ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm",
                                              "/dev/nvidia-uvm-tools", "/dev/nvidia1"));
  for (const auto& node : edits->nodes) {
    EXPECT_EQ(node.permissions, "rw");
    EXPECT_FALSE(node.major.has_value());
    EXPECT_EQ(node.host_path, node.path);
  }
}

TEST(Edits, WithoutHooksTheLoaderFindsTheSetInItsOwnDirectories) {
  const auto edits = edits_for(machine_for_test(), asking_for({"0"}), {});
  EXPECT_THAT(
      places(*edits),
      ElementsAre("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2",
                  "/usr/lib/x86_64-linux-gnu/tls", "/usr/lib64/glibc-hwcaps/x86-64-v2",
                  "/usr/lib64/tls", "/usr/local/nvidia/bin", "/usr/bin/nvidia-smi",
                  "/usr/bin/nvidia-cuda-mps-control", "/etc/OpenCL/vendors/nvidia.icd",
                  "/run/nvidia-persistenced/socket"));
  EXPECT_EQ(edits->mounts[0].host_path,
            "/var/lib/gantry/driver/current/sets/compute+utility/lib64");
  EXPECT_THAT(edits->hooks, IsEmpty());
  EXPECT_THAT(edits->libraries, IsEmpty());
  EXPECT_THAT(edits->files, IsEmpty());
}

TEST(Edits, NeverThePathsThatBreakImages) {
  for (const auto flavour : {Flavour::NoHooks, Flavour::OneHook, Flavour::Shim}) {
    const auto edits =
        edits_for(machine_for_test(),
                  asking_for({"all"}, {Compute, Utility, Video, Graphics, Display, Ngx, Compat32}),
                  {.flavour = flavour});
    ASSERT_TRUE(edits.ok());
    EXPECT_THAT(edits->env, Each(AllOf(Not(StartsWith("PATH=")), Not(StartsWith("LD_")))));
    EXPECT_THAT(places(*edits),
                Each(AllOf(Not(StartsWith("/proc")), Not(HasSubstr("ld.so.cache")))));
  }
}

TEST(Edits, WithAHookThereAreNoMountsInTheLoadersDirectories) {
  const auto edits =
      edits_for(machine_for_test(), asking_for({"0"}), {.flavour = Flavour::OneHook});
  ASSERT_EQ(edits->hooks.size(), 2U);
  EXPECT_THAT(edits->hooks[1].args,
              ElementsAre("nvidia-cdi-hook", "disable-device-node-modification"));
  EXPECT_THAT(edits->hooks[0].args,
              ElementsAre("nvidia-cdi-hook", "update-ldcache", "--folder",
                          "/usr/local/nvidia/lib64", "--host-driver-version", "running"));
  EXPECT_THAT(edits->hooks[0].env, Not(IsEmpty()));
  EXPECT_THAT(places(*edits), Not(Contains(HasSubstr("glibc-hwcaps"))));
}

TEST(Edits, TheShimGetsTheNamesToMerge) {
  const auto edits = edits_for(machine_for_test(), asking_for({"0"}), {.flavour = Flavour::Shim});
  EXPECT_THAT(edits->libraries,
              Contains(model::LibraryEdit{"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"}));
  EXPECT_THAT(edits->libraries,
              Contains(model::LibraryEdit{"libcuda.so", "/usr/local/nvidia/lib64/libcuda.so"}));
  ASSERT_EQ(edits->files.size(), 1U);
  EXPECT_EQ(edits->files[0].path, "/etc/ld.so.conf.d/00-gantry.conf");
  EXPECT_EQ(edits->files[0].content, "/usr/local/nvidia/lib64\n");
  EXPECT_THAT(edits->hooks, IsEmpty());
}

TEST(Edits, DrawingInTheShimIsKeptToTheContainersGpus) {
  const auto edits =
      edits_for(machine_for_test(), asking_for({"1"}, {Graphics}), {.flavour = Flavour::Shim});
  ASSERT_EQ(edits->files.size(), 2U);
  EXPECT_THAT(edits->files[1].path, HasSubstr("nvidia-application-profiles-rc.d"));
  EXPECT_THAT(edits->files[1].content, HasSubstr("0x2]"));
}

TEST(Edits, LibrariesOfAnotherDriverThanTheModuleAreNoted) {
  auto machine = machine_for_test();
  machine.driver.library_version = "580.95.05";
  EXPECT_THAT(edits_for(machine, asking_for({"0"}), {})->notes,
              ElementsAre(HasSubstr("module is 580.159.04 and its libraries are 580.95.05")));
}

TEST(Edits, GroupsAreGivenByNameOrRefusedWithWhatHelps) {
  auto machine = machine_for_test();
  auto request = asking_for({"0"});
  request.groups = {model::DeviceGroup::Gdrcopy};
  const auto missing = edits_for(machine, request, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Errc::NotFound);
  EXPECT_THAT(missing.error().text(), HasSubstr("modprobe gdrdrv"));
  machine.nodes.push_back(node_for_test("/dev/gdrdrv", 500, 0));
  EXPECT_THAT(node_paths(*edits_for(machine, request, {})), Contains("/dev/gdrdrv"));
}

TEST(Edits, RightsOverMigAreOneNodeEach) {
  auto machine = machine_for_test();
  machine.nodes.push_back(node_for_test("/dev/nvidia-caps/nvidia-cap1", 507, 1, 0400));
  machine.nodes.push_back(node_for_test("/dev/nvidia-caps/nvidia-cap2", 507, 2, 0444));
  auto request = asking_for({"0"});
  EXPECT_THAT(node_paths(*edits_for(machine, request, {})), Not(Contains(HasSubstr("nvidia-cap"))));
  request.mig_config = true;
  EXPECT_THAT(node_paths(*edits_for(machine, request, {})),
              AllOf(Contains("/dev/nvidia-caps/nvidia-cap1"),
                    Not(Contains("/dev/nvidia-caps/nvidia-cap2"))));
  request.mig_monitor = true;
  EXPECT_THAT(node_paths(*edits_for(machine, request, {})),
              Contains("/dev/nvidia-caps/nvidia-cap2"));
}

TEST(Edits, AnImexChannelThatIsNotThereIsRefused) {
  auto request = asking_for({"0"});
  request.imex_channels = {5};
  EXPECT_THAT(edits_for(machine_for_test(), request, {}).error().text(),
              HasSubstr("no IMEX channel 5"));
}

TEST(Edits, CapabilitiesDecideAboutFilesAndNodes) {
  const auto utility = edits_for(machine_for_test(), asking_for({"0"}, {Utility}), {});
  EXPECT_THAT(node_paths(*utility), ElementsAre("/dev/nvidiactl", "/dev/nvidia0"));
  EXPECT_THAT(places(*utility), Not(Contains("/etc/OpenCL/vendors/nvidia.icd")));
  const auto graphics = edits_for(machine_for_test(), asking_for({"0"}, {Graphics}), {});
  EXPECT_THAT(node_paths(*graphics),
              ElementsAre("/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia0", "/dev/dri/card0",
                          "/dev/dri/by-path/pci-0000:3b:00.0-card"));
  EXPECT_THAT(places(*graphics), Contains("/etc/vulkan/icd.d/nvidia_icd.json"));
  EXPECT_THAT(places(*graphics), Not(Contains("/usr/bin/nvidia-smi")));
  EXPECT_THAT(graphics->additional_gids, ElementsAre(44U));
}

TEST(Edits, ALinkOfUdevIsTheSameNodeByAnotherName) {
  const auto edits = edits_for(machine_for_test(), asking_for({"1"}, {Graphics}),
                               {.numbers = DeviceNumbers::Fill});
  const auto& link = edits->nodes.back();
  EXPECT_EQ(link.path, "/dev/dri/by-path/pci-0000:3c:00.0-card");
  EXPECT_EQ(link.host_path, "/dev/dri/card1");
  EXPECT_EQ(link.major, 226U);
  EXPECT_EQ(link.minor, 1U);
  // Without the node there is nothing that the link could lead to.
  auto machine = machine_for_test();
  std::erase_if(machine.nodes, [](const auto& node) { return node.path == "/dev/dri/card1"; });
  EXPECT_EQ(edits_for(machine, asking_for({"1"}, {Graphics}), {})->nodes.back().path,
            "/dev/nvidia1");
}

TEST(Edits, GbmFindsItsBackEndInEitherLayout) {
  const auto edits = edits_for(machine_for_test(), asking_for({"0"}, {Graphics}), {});
  EXPECT_THAT(places(*edits), AllOf(Contains("/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so"),
                                    Contains("/usr/lib64/gbm/nvidia-drm_gbm.so")));
  for (const auto& mount : edits->mounts) {
    if (!mount.container_path.ends_with("_gbm.so")) continue;
    EXPECT_EQ(mount.host_path,
              "/var/lib/gantry/driver/current/sets/graphics/lib64/libnvidia-allocator.so.1");
  }
  EXPECT_THAT(places(*edits_for(machine_for_test(), asking_for({"0"}), {})),
              Not(Contains("/usr/lib64/gbm/nvidia-drm_gbm.so")));
}

TEST(Edits, NamesThatADriversPackageMayLackAreThere) {
  const auto names = [](const char* file, const char* soname) {
    return names_in_directory({.path = std::string("/usr/lib64/") + file, .soname = soname});
  };
  EXPECT_THAT(
      names("libGLX_nvidia.so.580.159.04", "libGLX_nvidia.so.0"),
      ElementsAre("libGLX_nvidia.so.580.159.04", "libGLX_nvidia.so.0", "libGLX_indirect.so.0"));
  EXPECT_THAT(names("libnvidia-opticalflow.so.430.26", "libnvidia-opticalflow.so.1"),
              Contains("libnvidia-opticalflow.so"));
  const auto edits =
      edits_for(machine_for_test(), asking_for({"0"}, {Graphics}), {.flavour = Flavour::Shim});
  std::vector<std::string> known;
  for (const auto& library : edits->libraries) known.push_back(library.name);
  EXPECT_THAT(known, AllOf(Contains("libGLX_nvidia.so.1"), Contains("libGLX_indirect.so.0"),
                           Not(Contains("libGLX_nvidia.so.580.159.04"))));
}

TEST(Edits, SocketsAreWritableAndNotForPrograms) {
  const auto edits = edits_for(machine_for_test(), asking_for({"0"}), {});
  EXPECT_THAT(edits->mounts.back().options, AllOf(Not(Contains("ro")), Contains("noexec")));
}

TEST(Edits, FirmwareIsGivenOnlyWhenAskedFor) {
  const auto without = edits_for(machine_for_test(), asking_for({"0"}), {});
  EXPECT_THAT(places(*without), Not(Contains(HasSubstr("firmware"))));
  const auto with = edits_for(machine_for_test(), asking_for({"0"}), {.firmware = true});
  EXPECT_THAT(places(*with), Contains("/lib/firmware/nvidia/580.159.04/gsp_ga10x.bin"));
}

TEST(Edits, AMigInstanceIsItsGpusNodeAndTwoCapabilities) {
  const auto edits = edits_for(machine_for_test(), asking_for({"2:1"}), {});
  ASSERT_TRUE(edits.ok());
  EXPECT_THAT(
      node_paths(*edits),
      ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia2",
                  "/dev/nvidia-caps/nvidia-cap33", "/dev/nvidia-caps/nvidia-cap34"));
}

TEST(Edits, NoneIsTheDriverWithoutAGpu) {
  const auto edits = edits_for(machine_for_test(), asking_for({"none"}), {});
  EXPECT_THAT(node_paths(*edits), Not(Contains("/dev/nvidia0")));
  EXPECT_THAT(places(*edits), Contains("/usr/local/nvidia/lib64"));
}

TEST(Edits, TheEnginesRootIsInFrontOfEveryHostPath) {
  const auto edits =
      edits_for(machine_for_test(), asking_for({"0"}), {.engine_root = "/tmp/machine"});
  for (const auto& node : edits->nodes) EXPECT_EQ(node.host_path, "/tmp/machine" + node.path);
  EXPECT_THAT(edits->mounts,
              Each(Field(&model::MountEdit::host_path, StartsWith("/tmp/machine/"))));
  EXPECT_THAT(places(*edits), Each(Not(StartsWith("/tmp"))));
}

TEST(Edits, NumbersAreFilledOnlyWhenUsedAtOnce) {
  const auto edits =
      edits_for(machine_for_test(), asking_for({"0"}), {.numbers = DeviceNumbers::Fill});
  EXPECT_EQ(edits->nodes[1].major, 506U);
  EXPECT_EQ(edits->nodes[1].minor, 0U);
}

TEST(Edits, NodesOfAGroupBringTheGroup) {
  auto machine = machine_for_test();
  for (auto& node : machine.nodes) {
    if (node.path == "/dev/nvidia0") node.mode = 0660, node.gid = 33;
  }
  EXPECT_THAT(edits_for(machine, asking_for({"0"}), {})->additional_gids, ElementsAre(33U));
  EXPECT_THAT(
      edits_for(machine, asking_for({"0"}), {.groups = AdditionalGroups::None})->additional_gids,
      IsEmpty());
  const auto drawing =
      edits_for(machine, asking_for({"0"}, {Graphics}), {.groups = AdditionalGroups::DriverNodes});
  EXPECT_THAT(drawing->additional_gids, ElementsAre(33U));
  EXPECT_THAT(drawing->notes, ElementsAre(HasSubstr("group 44")));
}

TEST(Edits, AMissingNodeIsRefusedWithTheCommandThatMakesIt) {
  auto machine = machine_for_test();
  std::erase_if(machine.nodes, [](const auto& node) { return node.path == "/dev/nvidia0"; });
  const auto edits = edits_for(machine, asking_for({"0"}), {});
  ASSERT_FALSE(edits.ok());
  EXPECT_THAT(edits.error().text(),
              HasSubstr("GPU 0: /dev/nvidia0 is missing; `gantry doctor --fix`"));
}

TEST(Edits, WithoutUnifiedMemoryUtilityWorksAndANoteSaysTheRest) {
  auto machine = machine_for_test();
  std::erase_if(machine.nodes, [](const auto& node) { return node.path == "/dev/nvidia-uvm"; });
  const auto edits = edits_for(machine, asking_for({"0"}), {});
  ASSERT_TRUE(edits.ok());
  EXPECT_THAT(edits->notes, ElementsAre(HasSubstr("/dev/nvidia-uvm is missing")));
}

TEST(Edits, Compat32WithoutSuchLibrariesIsNoted) {
  const auto edits = edits_for(machine_for_test(), asking_for({"0"}, {Compute, Compat32}), {});
  EXPECT_THAT(edits->notes, ElementsAre(HasSubstr("32-bit libraries are not installed")));
}

TEST(Edits, RequirementsAreCheckedBeforeAnythingIsGiven) {
  auto request = asking_for({"0"});
  request.requirements = {"cuda>=99.0"};
  EXPECT_EQ(edits_for(machine_for_test(), request, {}).error().code(), Errc::Unsupported);
}

}  // namespace
}  // namespace gantry::plan
