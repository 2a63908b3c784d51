// SPDX-License-Identifier: Apache-2.0
#include "vm/pci/vgpu_capability.hpp"

#include "vm/pci/vgpu_config_for_test.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace gantry::pci {
namespace {

TEST(VgpuCapability, TheHostsDriverIsInTheCapability) {
  const auto facts = parse_vgpu_capability(vgpu_config_space());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->host_driver_version, "550.54.16");
  EXPECT_EQ(facts->host_driver_branch, "r550_40");
}

TEST(VgpuCapability, NoCapabilityNoGuest) {
  EXPECT_FALSE(parse_vgpu_capability(""));
  EXPECT_FALSE(parse_vgpu_capability(std::string(256, '\0')));
  EXPECT_FALSE(parse_vgpu_capability(std::string(256, '\xff')));
  auto other = vgpu_config_space();
  other[0x6b] = 'X';
  EXPECT_FALSE(parse_vgpu_capability(other));
}

TEST(VgpuCapability, AnyBytesAreSafe) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = vgpu_config_space().substr(0, random() % 257);
    for (int n = 0; n < 4 && !bytes.empty(); ++n)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    (void)parse_vgpu_capability(bytes);
  }
}

}  // namespace
}  // namespace gantry::pci
