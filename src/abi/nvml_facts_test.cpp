// SPDX-License-Identifier: Apache-2.0
#include "abi/nvml_facts.hpp"

#include <gtest/gtest.h>

namespace gantry::abi {
namespace {

TEST(NvmlHeader, AgreesWithTheVendorsHeader) {
  const auto vendor = vendor_nvml_facts();
  if (const auto why = vendor.find("missing"); why != vendor.end()) GTEST_SKIP() << why->second;
  const auto ours = our_nvml_facts();
  EXPECT_GT(vendor.size(), 500U);
  for (const auto& [what, value] : vendor) {
    const auto found = ours.find(what);
    ASSERT_NE(found, ours.end()) << what;
    // Old functions fill structs that the vendor's header no longer declares; ours are named
    // gantry*.
    if (found->second.find("gantry") != std::string::npos) continue;
    EXPECT_EQ(found->second, value) << what;
  }
}

}  // namespace
}  // namespace gantry::abi
