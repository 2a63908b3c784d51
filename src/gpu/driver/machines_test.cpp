// SPDX-License-Identifier: Apache-2.0
// Tests the whole module on simulated machines, which have the layout of real ones.
#include "base/core/text.hpp"
#include "gpu/driver/device_nodes.hpp"
#include "gpu/driver/file_names.hpp"
#include "gpu/driver/files.hpp"
#include "support/machine.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace gantry::driver {
namespace {

using model::DriverFileKind;
using test::Machine;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

struct FoundDriver {
  DriverRoot root;
  DriverFiles files;
};

FoundDriver look(const Machine& machine) {
  const auto host = machine.host();
  auto root = find_root(host);
  auto files = find_files(host, root);
  return {std::move(root), std::move(files)};
}

std::vector<std::string> names(const DriverFiles& found, DriverFileKind kind) {
  std::vector<std::string> result;
  for (const auto& file : found.files) {
    if (file.kind == kind) result.emplace_back(base_name(file.path));
  }
  return result;
}

TEST(OnH200, TheDriverIsInUsrLocalNvidia) {
  const Machine machine("h200");
  const auto [root, found] = look(machine);
  EXPECT_EQ(root.root, "/usr/local/nvidia");
  EXPECT_EQ(root.library_directory, "/usr/local/nvidia/lib64");
  EXPECT_EQ(root.kernel_version, "580.159.04");
  EXPECT_EQ(root.library_version, "580.159.04");
  EXPECT_THAT(root.notes, IsEmpty());
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_EQ(names(found, DriverFileKind::Library).size(), 26U);
  EXPECT_THAT(names(found, DriverFileKind::Binary),
              ElementsAre("nvidia-smi", "nvidia-debugdump", "nvidia-persistenced",
                          "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"));
  EXPECT_THAT(names(found, DriverFileKind::Firmware),
              ElementsAre("gsp_ga10x.bin", "gsp_tu10x.bin"));
  EXPECT_THAT(names(found, DriverFileKind::Config),
              IsSupersetOf({"10_nvidia.json", "nvidia_icd.json", "nvidia_layers.json"}));
}

TEST(OnH200, EveryFileIsKnownToTheTableAndSaysWhy) {
  const Machine machine("h200");
  for (const auto& file : look(machine).files.files) {
    EXPECT_FALSE(file.why.empty()) << file.path;
    EXPECT_THAT(file.why, ::testing::Not(HasSubstr("not in our table"))) << file.path;
    EXPECT_FALSE(file.capabilities.empty()) << file.path;
  }
}

TEST(OnH200, LibrariesAreFoundByTheNamesThatProgramsUse) {
  const Machine machine("h200");
  const auto found = look(machine).files;
  for (const auto* name : {"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-opencl.so.1",
                           "libcuda.so", "libnvidia-glcore.so.580.159.04"}) {
    const auto* file = found.library(name);
    ASSERT_NE(file, nullptr) << name;
    EXPECT_THAT(file->path, HasSubstr("/usr/local/nvidia/lib64/")) << name;
  }
  EXPECT_EQ(found.library("libnvidia-nothing.so.1"), nullptr);
}

TEST(OnH200, NodesAgreeWithProcDevices) {
  const Machine machine("h200");
  const auto found = find_device_nodes(machine.host(), std::vector<std::uint32_t>{0});
  EXPECT_THAT(found.problems, IsEmpty());
  std::vector<std::string> paths;
  for (const auto& node : found.nodes) paths.push_back(node.path);
  EXPECT_THAT(paths, ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                 "/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1",
                                 "/dev/nvidia-caps/nvidia-cap2"));
}

TEST(OnH200, ARenumberedModuleMakesItsNodesWrong) {
  Machine machine("h200");
  machine.node("/dev/nvidia-uvm c 500 0 0666 0 0");
  const auto found = find_device_nodes(machine.host(), std::vector<std::uint32_t>{0});
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_EQ(found.problems[0].fault, DeviceNodeFault::WrongNumbers);
}

TEST(OnH200x8, EightGpusHaveEightNodes) {
  const Machine machine("h200x8");
  const auto found =
      find_device_nodes(machine.host(), std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(found.problems, IsEmpty());
  const auto gpus =
      std::count_if(found.nodes.begin(), found.nodes.end(),
                    [](const model::DeviceNode& n) { return n.why.starts_with("GPU with minor"); });
  EXPECT_EQ(gpus, 8);
  EXPECT_TRUE(look(machine).root.found());
}

TEST(OnK80, LibcudaIsApartFromTheBranchsDirectory) {
  const Machine machine("k80");
  const auto [root, found] = look(machine);
  EXPECT_EQ(root.root, "/");
  EXPECT_EQ(root.library_version, "384.98");
  EXPECT_EQ(root.library_directory, "/usr/lib/x86_64-linux-gnu");
  EXPECT_THAT(root.notes, IsEmpty());
  EXPECT_EQ(found.library("libcuda.so.1")->path, "/usr/lib/x86_64-linux-gnu/libcuda.so.384.98");
  EXPECT_EQ(found.library("libnvidia-ml.so.1")->path, "/usr/lib/nvidia-384/libnvidia-ml.so.384.98");
  const auto smi = std::find_if(
      found.files.begin(), found.files.end(),
      [](const model::DriverFile& f) { return f.path == "/usr/lib/nvidia-384/bin/nvidia-smi"; });
  EXPECT_NE(smi, found.files.end());
  EXPECT_THAT(find_device_nodes(machine.host(), std::vector<std::uint32_t>{0}).problems, IsEmpty());
}

TEST(OnK2000, TheDriverIsInLib64) {
  const Machine machine("k2000");
  const auto [root, found] = look(machine);
  EXPECT_EQ(root.root, "/");
  EXPECT_EQ(root.library_version, "430.26");
  EXPECT_EQ(root.library_directory, "/usr/lib64");
  EXPECT_THAT(root.notes, IsEmpty());
  EXPECT_EQ(found.library("libcuda.so.1")->path, "/usr/lib64/libcuda.so.430.26");
  EXPECT_THAT(names(found, DriverFileKind::Binary), Contains("nvidia-smi"));
  EXPECT_THAT(find_device_nodes(machine.host(), std::vector<std::uint32_t>{0}).problems, IsEmpty());
}

TEST(OnAMachineWithoutNodes, EachIsMissedWithItsCommand) {
  const Machine machine("no-nodes");
  const auto found = find_device_nodes(machine.host(), std::vector<std::uint32_t>{0});
  EXPECT_FALSE(found.problems.empty());
  for (const auto& problem : found.problems) {
    EXPECT_EQ(problem.fault, DeviceNodeFault::Missing) << problem.text;
    EXPECT_THAT(problem.text, HasSubstr("`gantry doctor --fix` creates it"));
  }
}

TEST(OnAMismatchedMachine, BothVersionsAreNamed) {
  const Machine machine("mismatch");
  const auto root = look(machine).root;
  EXPECT_NE(root.kernel_version, root.library_version);
  EXPECT_TRUE(root.found());
  EXPECT_THAT(root.notes, Contains(HasSubstr("the kernel module is " + root.kernel_version)));
}

// On every machine, broken or not, all files of the driver are recognised.
class DriverOfEveryMachine : public ::testing::TestWithParam<const char*> {};

TEST_P(DriverOfEveryMachine, HasOnlyFilesOfOneVersionThatTheTableKnows) {
  const Machine machine(GetParam());
  const auto [root, found] = look(machine);
  EXPECT_TRUE(root.found());
  EXPECT_THAT(root.others, IsEmpty());
  EXPECT_NE(found.library("libnvidia-ml.so.1"), nullptr);
  for (const auto& file : found.files) {
    EXPECT_THAT(file.why, ::testing::Not(HasSubstr("not in our table"))) << file.path;
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, DriverOfEveryMachine,
                         ::testing::Values("a100x8", "t4x4", "k620", "k620-460", "mixed",
                                           "vgpu-guest"),
                         [](const auto& test) {
                           std::string name(test.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(OnH200, AnUpgradeWithoutAReloadIsADifferenceOfVersions) {
  Machine machine("h200");
  machine.file(
      "/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n");
  const auto root = look(machine).root;
  EXPECT_EQ(root.kernel_version, "570.86.15");
  EXPECT_EQ(root.library_version, "580.159.04");
  EXPECT_THAT(root.notes, Contains(HasSubstr("the kernel module is 570.86.15")));
}

}  // namespace
}  // namespace gantry::driver
