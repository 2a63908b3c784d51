// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/kernel_log.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::doctor {
namespace {

using ::testing::HasSubstr;

TEST(KernelLog, ReadsRecordsWithoutTheirPrefixAndContinuation) {
  test::Tree tree;
  tree.file("dev/kmsg", "6,339,5140900,-;NVRM: loading\n SUBSYSTEM=pci\n4,340,5140901,-;a;b\n");
  EXPECT_EQ(read_kernel_log(tree.host()), "NVRM: loading\na;b\n");
}

TEST(KernelLog, FallsBackToTheFileWrittenAtBoot) {
  test::Tree tree;
  tree.file("var/log/dmesg", "[    1.0] hello\n");
  EXPECT_EQ(read_kernel_log(tree.host()), "[    1.0] hello\n");
  EXPECT_EQ(read_kernel_log(test::Tree().host()), std::nullopt);
}

TEST(Xids, AreFoundInOldAndNewLines) {
  const auto xids = find_xids(
      "[  10.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off\n"
      "NVRM: Xid (0000:05:00): 31, Ch 00000010\nNVRM: Xid (PCI:0000:3b:00): 154\n");
  ASSERT_EQ(xids.size(), 3U);
  EXPECT_EQ(xids[0].pci, "0000:3b:00");
  EXPECT_EQ(xids[0].number, 79U);
  EXPECT_THAT(xids[0].text, HasSubstr("name=python"));
  EXPECT_EQ(xids[1].pci, "0000:05:00");
  EXPECT_EQ(xids[2].text, "");
}

TEST(Xids, AreNotMadeOfDamagedLines) {
  EXPECT_TRUE(
      find_xids("NVRM: Xid (PCI\nNVRM: Xid (PCI:1): \nNVRM: Xid (x): 99999999999, y").empty());
}

TEST(Xids, OfProgramsAreNotTheGpusFault) {
  for (const unsigned xid : {13U, 31U, 43U, 45U, 68U, 109U}) {
    EXPECT_EQ(xid_meaning(xid).kind, XidClass::Application) << xid;
  }
  EXPECT_EQ(xid_meaning(79).kind, XidClass::Critical);
  EXPECT_EQ(xid_meaning(94).kind, XidClass::Notable);
  EXPECT_EQ(xid_meaning(9998).kind, XidClass::Notable) << "an unknown number proves nothing";
}

}  // namespace
}  // namespace gantry::doctor
