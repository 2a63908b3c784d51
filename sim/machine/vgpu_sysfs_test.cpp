// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/vgpu_sysfs.hpp"

#include "sim/machine/tree.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

namespace gantry::sim {
namespace {

class VgpuSysfs : public ::testing::Test {
 protected:
  void start(const char* name) {
    root_ = tree_.path(name);
    ASSERT_TRUE(create(*load_machine(name), {.root = root_, .nodes = DeviceNodes::Table}).ok());
  }
  // 0 or the errno.
  int write(const std::string& path, std::string_view text) {
    const auto status = write_vgpu_sysfs(root_, path, text);
    return status.ok() ? 0 : status.error().sys_errno();
  }
  std::string read(const std::string& path) {
    return sys::Host::at(root_)->read_value(path).value_or("(absent)");
  }

  test::Tree tree_;
  std::string root_;
  const std::string gpu_ = "/sys/bus/pci/devices/0000:3b:00.0";
  const std::string uuid_ = "83b8f4f2-509f-482f-8c1e-e6bfe0fa1001";
};

TEST_F(VgpuSysfs, GivesMediatedDevicesOnTheGpu) {
  start("vgpu-t4");
  const std::string type = "/sys/class/mdev_bus/0000:3b:00.0/mdev_supported_types/nvidia-233";
  EXPECT_EQ(read(type + "/available_instances"), "2");
  EXPECT_EQ(write(type + "/create", "1"), EINVAL);
  EXPECT_EQ(write(type + "/create", uuid_), 0);
  EXPECT_EQ(write(type + "/create", uuid_), EEXIST);
  EXPECT_EQ(read(type + "/available_instances"), "1");
  EXPECT_EQ(
      read("/sys/class/mdev_bus/0000:3b:00.0/mdev_supported_types/nvidia-232/available_instances"),
      "0");
  EXPECT_TRUE(std::filesystem::exists(root_ + "/sys/bus/mdev/devices/" + uuid_ + "/iommu_group"));
  EXPECT_EQ(write("/sys/bus/mdev/devices/" + uuid_ + "/remove", "1"), 0);
  EXPECT_EQ(read(type + "/available_instances"), "2");
  EXPECT_EQ(write("/sys/bus/mdev/devices/" + uuid_ + "/remove", "1"), ENOENT);
}

TEST_F(VgpuSysfs, HasVirtualFunctionsOnlyWhenTheyAreEnabled) {
  start("vgpu-a10");
  const std::string create =
      "/sys/class/mdev_bus/0000:3b:00.4/mdev_supported_types/nvidia-594/create";
  EXPECT_EQ(read(gpu_ + "/sriov_totalvfs"), "16");
  EXPECT_EQ(write(create, uuid_), ENOENT);
  EXPECT_EQ(write(gpu_ + "/sriov_numvfs", "17"), ERANGE);
  EXPECT_EQ(write(gpu_ + "/sriov_numvfs", "16"), 0);
  EXPECT_EQ(write(gpu_ + "/sriov_numvfs", "8"), EBUSY);
  EXPECT_EQ(read("/sys/bus/pci/devices/0000:3b:02.3/vendor"), "0x10de") << "the sixteenth";
  EXPECT_EQ(write(create, uuid_), 0);
  EXPECT_EQ(write(create, "83b8f4f2-509f-482f-8c1e-e6bfe0fa1002"), ENOSPC)
      << "one for each function";
  EXPECT_EQ(write(gpu_ + "/sriov_numvfs", "0"), 0);
  EXPECT_FALSE(std::filesystem::exists(root_ + "/sys/bus/mdev/devices/" + uuid_));
  EXPECT_EQ(read("/sys/bus/pci/devices/0000:3b:00.4/vendor"), "(absent)");
}

TEST_F(VgpuSysfs, SetsTheTypeOfAVirtualFunction) {
  start("vgpu-l40s");
  ASSERT_EQ(write(gpu_ + "/sriov_numvfs", "32"), 0);
  const std::string function = "/sys/bus/pci/devices/0000:3b:00.4/nvidia/";
  EXPECT_EQ(read(function + "current_vgpu_type"), "0");
  EXPECT_EQ(write(function + "current_vgpu_type", "7"), EINVAL);
  EXPECT_EQ(write(function + "current_vgpu_type", "1156"), 0);
  EXPECT_EQ(write(function + "current_vgpu_type", "1150"), EBUSY);
  EXPECT_EQ(read("/sys/bus/pci/devices/0000:3b:00.5/nvidia/creatable_vgpu_types"),
            "ID    : vGPU Name")
      << "the list shrinks";
  EXPECT_EQ(write("/sys/bus/pci/devices/0000:3b:00.5/nvidia/current_vgpu_type", "1150"), ENOSPC);
  EXPECT_EQ(write(function + "current_vgpu_type", "0"), 0);
  EXPECT_TRUE(allow_mixed_vgpus(root_, *model::PciAddress::parse("0000:3b:00.0")).ok());
  EXPECT_EQ(write(function + "current_vgpu_type", "1155"), 0);
  EXPECT_EQ(write("/sys/bus/pci/devices/0000:3b:00.5/nvidia/current_vgpu_type", "1150"), 0);
  EXPECT_TRUE(reboot_vgpu_host(root_).ok());
  EXPECT_EQ(read(gpu_ + "/sriov_numvfs"), "0");
}

TEST_F(VgpuSysfs, GivesAMigBackedVgpuForEachInstance) {
  start("vgpu-a100");
  ASSERT_EQ(write(gpu_ + "/sriov_numvfs", "16"), 0);
  const auto type = [](int function, const char* id) {
    return fmt::format("/sys/class/mdev_bus/0000:3b:00.{}/mdev_supported_types/nvidia-{}/",
                       function, id);
  };
  EXPECT_EQ(read(type(4, "475") + "available_instances"), "1");
  EXPECT_EQ(write(type(4, "475") + "create", uuid_), 0);
  EXPECT_EQ(read(type(5, "475") + "available_instances"), "0") << "the only 2g.10gb";
  EXPECT_EQ(read(type(5, "474") + "available_instances"), "1");
  EXPECT_EQ(read(type(5, "476") + "available_instances"), "0") << "no such instance";
  EXPECT_EQ(read(type(5, "468") + "available_instances"), "0") << "a time-sliced type";
  EXPECT_EQ(write(type(5, "468") + "create", "83b8f4f2-509f-482f-8c1e-e6bfe0fa1002"), ENOSPC);
  EXPECT_EQ(write("/sys/bus/mdev/devices/" + uuid_ + "/remove", "1"), 0);
  EXPECT_EQ(read(type(5, "475") + "available_instances"), "1");
}

}  // namespace
}  // namespace gantry::sim
