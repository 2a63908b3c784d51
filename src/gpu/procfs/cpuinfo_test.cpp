// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/cpuinfo.hpp"

#include <gtest/gtest.h>

namespace gantry::procfs {
namespace {

TEST(Cpuinfo, FindsTheFlagOfAVirtualMachine) {
  EXPECT_TRUE(has_hypervisor_flag("vendor_id : GenuineIntel\nflags\t\t: fpu hypervisor lahf_lm\n"));
  EXPECT_TRUE(has_hypervisor_flag("flags : fpu hypervisor\r\n"));
  EXPECT_FALSE(has_hypervisor_flag("vendor_id : GenuineIntel\nflags\t\t: fpu vmx\n"));
  EXPECT_FALSE(has_hypervisor_flag("model name : hypervisor\nflags : fpu\n"));
  EXPECT_FALSE(has_hypervisor_flag("flags : fpu not_hypervisor hypervisor2\n"));
  EXPECT_FALSE(has_hypervisor_flag("flags : fpu\nflags : fpu hypervisor\n")) << "the first one";
  EXPECT_FALSE(has_hypervisor_flag(""));
}

}  // namespace
}  // namespace gantry::procfs
