// SPDX-License-Identifier: Apache-2.0
#include "node/labels/vgpu.hpp"

#include "support/tree.hpp"
#include "vm/pci/vgpu_config_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::labels {
namespace {

TEST(Vgpu, IsFoundAmongNvidiasDevices) {
  test::Tree tree;
  tree.file("sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n")
      .file("sys/bus/pci/devices/0000:00:01.0/config", pci::vgpu_config_space());
  EXPECT_FALSE(read_vgpu(tree.host()));
  tree.file("sys/bus/pci/devices/0000:00:02.0/vendor", "0x10de\n")
      .file("sys/bus/pci/devices/0000:00:02.0/config", pci::vgpu_config_space());
  EXPECT_TRUE(read_vgpu(tree.host()));
}

TEST(Vgpu, TheMachinesNameIsOneLine) {
  test::Tree tree;
  EXPECT_EQ(read_machine_type(tree.host()), "");
  tree.file("sys/class/dmi/id/product_name", "DGX H200\n");
  EXPECT_EQ(read_machine_type(tree.host()), "DGX H200");
}

}  // namespace
}  // namespace gantry::labels
