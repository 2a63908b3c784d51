// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/nvml.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::nvml {
namespace {

using ::testing::HasSubstr;

TEST(Nvml, LoadsWhatTheLibraryHasAndLeavesTheRestNull) {
  const auto nvml = Nvml::load(test::built("test-programs/libfake_whole.so"));
  ASSERT_TRUE(nvml.ok()) << nvml.error().text();
  unsigned count = 0;
  EXPECT_EQ(nvml->nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(nvml->nvmlDeviceGetMigMode, nullptr);
}

TEST(Nvml, NamesTheFunctionThatIsMissing) {
  const auto nvml = Nvml::load(test::built("test-programs/libfake_partial.so"));
  EXPECT_EQ(nvml.error().code(), Errc::Unsupported);
  EXPECT_THAT(nvml.error().text(), HasSubstr("nvmlDeviceGetUUID"));
}

TEST(Nvml, SaysWhyALibraryCannotBeLoaded) {
  EXPECT_EQ(Nvml::load("libnvidia-ml.so.1").error().code(), Errc::Invalid);
  EXPECT_EQ(Nvml::load("/no/such/libnvidia-ml.so.1").error().code(), Errc::NotFound);
  test::Tree tree;
  tree.file("libnvidia-ml.so.1",
            "not a library, but long enough for the loader to read an ELF header of it");
  const auto text = Nvml::load(tree.path("libnvidia-ml.so.1"));
  EXPECT_EQ(text.error().code(), Errc::Unsupported);
  EXPECT_THAT(text.error().text(), HasSubstr("invalid ELF header"));
}

TEST(Nvml, CanBeFilledByHand) {
  Nvml fake;
  fake.nvmlDeviceGetCount_v2 = [](unsigned* count) {
    *count = 8;
    return NVML_SUCCESS;
  };
  unsigned count = 0;
  EXPECT_EQ(fake.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 8U);
}

TEST(NvmlError, HasItsNameItsMeaningAndAReason) {
  const auto error = nvml_error(NVML_ERROR_DRIVER_NOT_LOADED, "nvmlInit_v2");
  EXPECT_EQ(error.code(), Errc::NotFound);
  EXPECT_EQ(error.text(),
            "nvmlInit_v2: NVML_ERROR_DRIVER_NOT_LOADED: the NVIDIA kernel module is not loaded");
  EXPECT_EQ(nvml_name(static_cast<nvmlReturn_t>(77)), "NVML error 77");
}

}  // namespace
}  // namespace gantry::nvml
