// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/read_host.hpp"

#include "vm/vgpu/vgpu_machine_for_test.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>

#include <filesystem>

namespace gantry::vgpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ReadHost, FindsMediatedDevicesOnTheGpu) {
  VgpuMachine machine("vgpu-t4");
  const auto gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].framework, Framework::MdevOnPf);
  EXPECT_EQ(gpus[0].device_filter(), "0x1EB810DE");
  EXPECT_EQ(gpus[0].framebuffer_mib, 16384U);
  ASSERT_NE(gpus[0].find_type("T4-4Q"), nullptr);
  EXPECT_EQ(gpus[0].find_type("T4-4Q")->id, "nvidia-232");
  EXPECT_EQ(gpus[0].find_type("T4-4Q")->available, 4U);
  EXPECT_EQ(gpus[0].find_type("T4-4Q")->max_instances, 4U);
  EXPECT_THAT(gpus[0].uuid.text, HasSubstr("GPU-3ce174c0"));
  EXPECT_EQ(find_gpu(gpus, "1"), &gpus[1]);
  EXPECT_EQ(find_gpu(gpus, "0000:AF:00.0"), &gpus[1]);
  EXPECT_EQ(find_gpu(gpus, gpus[1].uuid.text), &gpus[1]);
  EXPECT_EQ(find_gpu(gpus, "2"), nullptr);
}

TEST(ReadHost, SaysThatVirtualFunctionsAreOff) {
  VgpuMachine machine("vgpu-a10");
  const auto gpus = machine.gpus();
  EXPECT_EQ(gpus[0].framework, Framework::VfsOff);
  EXPECT_EQ(gpus[0].total_vfs, 16U);
  EXPECT_THAT(gpus[0].types, IsEmpty());
}

TEST(ReadHost, FindsMediatedDevicesOnVirtualFunctions) {
  VgpuMachine machine("vgpu-a10");
  ASSERT_TRUE(
      create(machine.host(), {.gpu = first_gpu(), .type = "A10-4Q"}, machine.actions()).ok());
  const auto gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 2U) << "virtual functions are not GPUs";
  EXPECT_EQ(gpus[0].framework, Framework::MdevOnVfs);
  EXPECT_EQ(gpus[0].parents.size(), 16U);
  ASSERT_EQ(gpus[0].vgpus.size(), 1U);
  EXPECT_EQ(gpus[0].vgpus[0].parent.sysfs(), "0000:3b:00.4");
  EXPECT_EQ(gpus[0].vgpus[0].type, "A10-4Q");
  EXPECT_TRUE(gpus[0].vgpus[0].iommu_group.has_value());
  // 15 functions are free, but five more fill the framebuffer.
  EXPECT_EQ(gpus[0].find_type("A10-4Q")->available, 5U);
  EXPECT_EQ(gpus[0].find_type("A10-8Q")->available, 0U) << "one size at a time";
}

TEST(ReadHost, KeepsTheNameOfATypeThatIsNoLongerOffered) {
  VgpuMachine machine("vgpu-l40s");
  ASSERT_TRUE(
      create(machine.host(), {.gpu = first_gpu(), .type = "L40S-48Q"}, machine.actions()).ok());
  const auto gpus = machine.gpus();
  EXPECT_EQ(gpus[0].framework, Framework::VendorVfio);
  ASSERT_EQ(gpus[0].vgpus.size(), 1U);
  EXPECT_EQ(gpus[0].vgpus[0].type, "L40S-48Q");
  EXPECT_EQ(gpus[0].vgpus[0].id(), "0000:3b:00.4");
  EXPECT_EQ(gpus[0].find_type("L40S-48Q")->available, 0U);
  // Another tool's vGPU, and nothing remembered: the number is still known.
  EXPECT_EQ(read_host(machine.host())[0].vgpus[0].type_id, "1156");
}

TEST(ReadHost, NamesTheProcessThatUsesAVgpu) {
  VgpuMachine machine("vgpu-t4");
  ASSERT_TRUE(
      create(machine.host(), {.gpu = first_gpu(), .type = "T4-8Q"}, machine.actions()).ok());
  machine.hold(machine.gpus()[0].vgpus[0], 4711);
  EXPECT_THAT(machine.gpus()[0].vgpus[0].holders, ElementsAre(4711U));
}

// 0000:3b:00.4 has a vGPU, and the driver does not say it.
class SilentVgpu : public testing::Test {
 protected:
  SilentVgpu() {
    const Addition addition{.gpu = first_gpu(), .type = "L40S-8Q"};
    EXPECT_TRUE(create(machine_.host(), addition, machine_.actions()).ok());
    EXPECT_EQ(types_of(machine_.gpus()), "L40S-8Q|");
    path_ = machine_.vendor_path("0000:3b:00.4");
    std::filesystem::remove(path_);
  }
  VgpuMachine machine_{"vgpu-l40s"};
  std::string path_;
};

TEST_F(SilentVgpu, IsNotTakenForNone) {
  std::filesystem::create_directory(path_);  // the read fails
  const auto gpu = machine_.gpus()[0];
  EXPECT_TRUE(gpu.silent);
  EXPECT_EQ(gpu.framework, Framework::VendorVfio);
  EXPECT_THAT(gpu.problem, HasSubstr("the driver does not say which vGPUs it has"));
  EXPECT_FALSE(machine_.gpus()[1].silent);
  const auto done = {
      apply(machine_.host(), {{first_gpu(), {}}}, machine_.actions()),
      apply(machine_.host(), {{first_gpu(), {{"L40S-8Q", 2}}}}, machine_.actions()),
      remove(machine_.host(), {"0000:3b:00.4"}, machine_.actions()),
      create(machine_.host(), {.gpu = first_gpu(), .type = "L40S-8Q"}, machine_.actions())};
  for (const auto& one : done) {
    ASSERT_FALSE(one.ok());
    EXPECT_EQ(one.error().code(), Errc::Busy);
    EXPECT_THAT(one.error().text(), HasSubstr("does not say which vGPUs it has"));
  }
  EXPECT_EQ(machine_.acts(), 0);
}

TEST_F(SilentVgpu, IsNotWaitedForWithoutEnd) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto gpu = machine_.gpus()[0];
  EXPECT_TRUE(gpu.silent);
  EXPECT_THAT(gpu.problem, HasSubstr("did not return within"));
}

TEST(ReadHost, SaysWhyAGpuHasNoVgpus) {
  test::Tree tree;
  tree.file("sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n")
      .file("sys/bus/pci/devices/0000:3b:00.0/device", "0x2236\n")
      .file("sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n");
  auto gpus = read_host(tree.host());
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].problem, "no driver is bound to it");
  tree.link("sys/bus/pci/devices/0000:3b:00.0/driver", "../../drivers/vfio-pci");
  EXPECT_EQ(read_host(tree.host())[0].problem, "it is bound to vfio-pci, not to nvidia");
  tree.remove("sys/bus/pci/devices/0000:3b:00.0/driver");
  tree.link("sys/bus/pci/devices/0000:3b:00.0/driver", "../../drivers/nvidia");
  EXPECT_THAT(read_host(tree.host())[0].problem, HasSubstr("no module nvidia_vgpu_vfio"));
  tree.directory("sys/module/nvidia_vgpu_vfio");
  EXPECT_THAT(read_host(tree.host())[0].problem, HasSubstr("nvidia-vgpud has not run"));
  tree.file("sys/bus/pci/devices/0000:3b:00.0/sriov_totalvfs", "16\n");
  EXPECT_EQ(read_host(tree.host())[0].framework, Framework::VfsOff);
  tree.file("sys/bus/pci/devices/0000:3b:00.0/device", "0x1eb8\n");
  EXPECT_EQ(read_host(tree.host())[0].framework, Framework::None) << "a T4 needs no VFs";
}

}  // namespace
}  // namespace gantry::vgpu
