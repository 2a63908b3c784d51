// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_names.hpp"

#include <gtest/gtest.h>

namespace gantry::probe {
namespace {

constexpr std::uint64_t kH200 = std::uint64_t{143771} << 20U;

TEST(MigProfileName, IsWhatTheH200Shows) {
  EXPECT_EQ(mig_profile_name(1, 1, 16384, kH200), "1g.18gb");
  EXPECT_EQ(mig_profile_name(1, 1, 33280, kH200), "1g.35gb");
  EXPECT_EQ(mig_profile_name(2, 2, 33280, kH200), "2g.35gb");
  EXPECT_EQ(mig_profile_name(3, 3, 71424, kH200), "3g.71gb");
  EXPECT_EQ(mig_profile_name(7, 7, 143360, kH200), "7g.141gb");
}

TEST(MigProfileName, NamesASmallerComputeInstance) {
  EXPECT_EQ(mig_profile_name(3, 1, 71424, kH200), "1c.3g.71gb");
}

TEST(MigProfileName, IsEmptyForNonsense) {
  EXPECT_EQ(mig_profile_name(0, 0, 16384, kH200), "");
  EXPECT_EQ(mig_profile_name(1, 1, 16384, 0), "");
  EXPECT_EQ(mig_profile_name(1, 1, UINT64_MAX, kH200), "");
}

TEST(Words, AreNvidiaSmis) {
  EXPECT_EQ(brand_name(NVML_BRAND_NVIDIA), "NVIDIA");
  EXPECT_EQ(brand_name(NVML_BRAND_QUADRO), "Quadro");
  EXPECT_EQ(brand_name(static_cast<nvmlBrandType_t>(17)), "");
  EXPECT_EQ(architecture_name(NVML_DEVICE_ARCH_ADA), "Ada Lovelace");
  EXPECT_EQ(architecture_name(77), "");
  EXPECT_EQ(architecture_of({7, 5}), "Turing");
  EXPECT_EQ(architecture_of({7, 0}), "Volta");
  EXPECT_EQ(architecture_of({8, 9}), "Ada Lovelace");
  EXPECT_EQ(compute_mode_name(NVML_COMPUTEMODE_EXCLUSIVE_PROCESS), "Exclusive_Process");
  EXPECT_EQ(virtualization_name(NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH), "Pass-Through");
  EXPECT_EQ(to_pcie_path(NVML_TOPOLOGY_INTERNAL), model::PciePath::SameBoard);
}

TEST(Versions, AreTakenApart) {
  EXPECT_EQ(format_cuda_version(13000), "13.0");
  EXPECT_EQ(format_cuda_version(11020), "11.2");
  EXPECT_EQ(format_cuda_version(-1), "");
  EXPECT_EQ(driver_part_of_nvml_version("13.580.159.04"), "580.159.04");
  EXPECT_EQ(driver_part_of_nvml_version("nonsense"), "");
}

}  // namespace
}  // namespace gantry::probe
