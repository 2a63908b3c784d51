// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/device_nodes.hpp"

#include "support/recording_kernel.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::mig_change {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct MigTree {
  test::Tree tree;
  MigTree() {
    tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
              "GPU UUID: \t GPU-a\nDevice Minor: \t 3\n");
    tree.file("proc/devices", "Character devices:\n195 nvidia\n241 nvidia-caps\n");
    tree.file("proc/driver/nvidia-caps/mig-minors",
              "config 1\nmonitor 2\ngpu3/gi1/access 12\ngpu3/gi1/ci0/access 13\n");
    tree.directory("dev/nvidia-caps");
    tree.file("dev.table", "/dev/nvidia-caps/nvidia-cap12 c 241 12 0444 0 0\n");
  }
};

mig::MigGpu with_instance() {
  return {.pci = *model::PciAddress::parse("0000:3b:00.0"),
          .instances = {{.id = 1, .profile = "3g.71gb", .compute = {{.id = 0}}}}};
}

TEST(InstanceNodes, AreMadeWhereTheyAreMissing) {
  const MigTree machine;
  test::RecordingKernel kernel;
  ASSERT_TRUE(make_instance_nodes(machine.tree.host(), with_instance(), kernel).ok());
  EXPECT_THAT(kernel.done, Contains(HasSubstr("nvidia-cap13")));
  EXPECT_THAT(kernel.done, Not(Contains(HasSubstr("nvidia-cap12"))));
}

TEST(InstanceNodes, AreLeftToTheToolThatMakesThem) {
  MigTree machine;
  machine.tree.file("proc/driver/nvidia/params", "ModifyDeviceFiles: 0\n");
  test::RecordingKernel kernel;
  ASSERT_TRUE(make_instance_nodes(machine.tree.host(), with_instance(), kernel).ok());
  EXPECT_THAT(kernel.done, IsEmpty());
}

TEST(InstanceNodes, AreNotMadeForAGpuWithoutInstances) {
  const MigTree machine;
  test::RecordingKernel kernel;
  ASSERT_TRUE(make_instance_nodes(machine.tree.host(), {}, kernel).ok());
  EXPECT_THAT(kernel.done, IsEmpty());
}

}  // namespace
}  // namespace gantry::mig_change
