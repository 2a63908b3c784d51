// SPDX-License-Identifier: Apache-2.0
#include "node/labels/vgpu.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace gantry::labels {
namespace {

// A configuration space with one vendor-specific capability behind a power management one.
std::string guest() {
  std::string bytes(256, '\0');
  bytes[6] = 0x10;
  bytes[0x34] = 0x60;
  bytes[0x60] = 0x01;
  bytes[0x61] = 0x68;
  bytes[0x68] = 0x09;
  bytes[0x69] = 0;
  bytes[0x6a] = 5 + 4 + 22;
  bytes.replace(0x6b, 2, "VF");
  bytes[0x6d] = 1;  // a record that is not ours
  bytes[0x6e] = 4;
  bytes[0x71] = 0;
  bytes[0x72] = 22;
  bytes.replace(0x73, 9, "550.54.16");
  bytes.replace(0x7d, 7, "r550_40");
  return bytes;
}

TEST(Vgpu, TheHostsDriverIsInTheCapability) {
  const auto facts = parse_vgpu(guest());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->host_driver_version, "550.54.16");
  EXPECT_EQ(facts->host_driver_branch, "r550_40");
}

TEST(Vgpu, NoCapabilityNoGuest) {
  EXPECT_FALSE(parse_vgpu(""));
  EXPECT_FALSE(parse_vgpu(std::string(256, '\0')));
  EXPECT_FALSE(parse_vgpu(std::string(256, '\xff')));
  auto other = guest();
  other[0x6b] = 'X';
  EXPECT_FALSE(parse_vgpu(other));
}

TEST(Vgpu, AnyBytesAreSafe) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = guest().substr(0, random() % 257);
    for (int n = 0; n < 4 && !bytes.empty(); ++n)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    (void)parse_vgpu(bytes);
  }
}

TEST(Vgpu, IsFoundAmongNvidiasDevices) {
  test::Tree tree;
  tree.file("sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n")
      .file("sys/bus/pci/devices/0000:00:01.0/config", guest());
  EXPECT_FALSE(read_vgpu(tree.host()));
  tree.file("sys/bus/pci/devices/0000:00:02.0/vendor", "0x10de\n")
      .file("sys/bus/pci/devices/0000:00:02.0/config", guest());
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
