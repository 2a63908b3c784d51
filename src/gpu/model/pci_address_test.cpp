// SPDX-License-Identifier: Apache-2.0
#include "gpu/model/pci_address.hpp"

#include <gtest/gtest.h>

namespace gantry::model {
namespace {

TEST(PciAddress, SpeaksSysfsAndNvml) {
  const auto address = PciAddress::parse("0000E322:00:00.0");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->sysfs(), "e322:00:00.0");
  EXPECT_EQ(address->nvml(), "0000E322:00:00.0");
  EXPECT_EQ(PciAddress::parse("e322:00:00.0"), address);
  EXPECT_EQ(PciAddress::parse("3b:00.0")->sysfs(), "0000:3b:00.0");
}

TEST(PciAddress, RefusesNonsense) {
  for (const auto* text : {"", "::", "0000:00:20.0", "0000:00:00.8", "0000:100:00.0", "x:00:00.0",
                           "0000:00:00", "0:0:0:0.0", "1ffffffff:00:00.0"}) {
    EXPECT_FALSE(PciAddress::parse(text)) << text;
  }
}

}  // namespace
}  // namespace gantry::model
