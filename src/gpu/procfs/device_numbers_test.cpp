// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/device_numbers.hpp"

#include <gtest/gtest.h>

namespace gantry::procfs {
namespace {

TEST(MigMinors, AreFoundByGpuMinorAndInstance) {
  const auto minors = *parse_mig_minors(
      "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\ngpu1/gi2/access "
      "30\ngpu1/gi2/ci1/access 32\n"
      "gpux/gi0/access 5\ngpu0/gi0/cix/access 6\nfuture thing 7\ngpu0/gi0/access "
      "99999999999\ngarbage\n\n");
  EXPECT_EQ(minors.rows.size(), 6U);
  EXPECT_EQ(minors.gpu_instance(1, 2), 30U);
  EXPECT_EQ(minors.compute_instance(1, 2, 1), 32U);
  EXPECT_EQ(minors.gpu_instance(1, 3), std::nullopt);
  EXPECT_EQ(minors.find_by_minor(4)->name(), "gpu0/gi0/ci0");
}

TEST(MigMinors, AFileThatDoesNotEndIsCorrupt) {
  std::string endless;
  for (int i = 0; i < 70000; ++i) endless += "config 1\n";
  EXPECT_EQ(parse_mig_minors(endless).error().code(), Errc::Corrupt);
}

TEST(ProcDevices, KeepsCharacterDevicesOfTheDriverOnly) {
  const auto majors = parse_proc_devices(
      "Character devices:\n  1 mem\n195 nvidia\n238 nvidia-uvm\n\nBlock devices:\n"
      "241 nvidia-block-that-is-not-ours\n");
  EXPECT_EQ(majors.of("nvidia-uvm"), 238U);
  EXPECT_EQ(majors.of("mem"), std::nullopt);
  EXPECT_EQ(majors.of("nvidia-block-that-is-not-ours"), std::nullopt);
}

TEST(CapabilityMinor, IsTheNumberOfItsLine) {
  EXPECT_EQ(parse_capability_minor("DeviceFileMinor: 4323\nDeviceFileMode: 256\n"), 4323U);
  for (const auto* text :
       {"", "DeviceFileMinor:", "DeviceFileMinor: -1\n", "DeviceFileMinor: 4294967296"}) {
    EXPECT_EQ(parse_capability_minor(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gantry::procfs
