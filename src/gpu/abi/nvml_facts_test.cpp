// SPDX-License-Identifier: Apache-2.0
#include "gpu/abi/nvml_facts.hpp"

#include "gpu/abi/disagreements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::abi {
namespace {

TEST(NvmlHeader, AgreesWithTheVendorsHeader) {
  const auto vendor = vendor_nvml_facts();
  if (const auto why = vendor.find("missing"); why != vendor.end()) GTEST_SKIP() << why->second;
  const auto ours = our_nvml_facts();
  EXPECT_GT(vendor.size(), 500U);
  EXPECT_THAT(disagreements(vendor, ours), ::testing::IsEmpty());
}

}  // namespace
}  // namespace gantry::abi
