// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_file.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::kernel_module {
namespace {

TEST(FindModule, KnowsThePlacesOfAllDistributions) {
  for (const std::string path :
       {"updates/dkms/nvidia.ko", "extra/nvidia/nvidia.ko.xz", "kernel/drivers/video/nvidia.ko",
        "kernel/nvidia-550/nvidia.ko.zst", "updates/nvidia.ko.gz", "weak-updates/nvidia.ko"}) {
    test::Tree tree;
    tree.file("lib/modules/6.1.0/" + path);
    EXPECT_EQ(find_module_file(tree.host(), "6.1.0", "nvidia"), "/lib/modules/6.1.0/" + path);
  }
}

TEST(FindModule, FindsNothingForAnotherKernelOrAReleaseThatIsAPath) {
  test::Tree tree;
  tree.file("lib/modules/6.1.0/updates/dkms/nvidia.ko");
  EXPECT_EQ(find_module_file(tree.host(), "6.1.1", "nvidia"), "");
  EXPECT_EQ(find_module_file(tree.host(), "../modules/6.1.0", "nvidia"), "");
  EXPECT_EQ(find_module_file(tree.host(), "", "nvidia"), "");
}

TEST(NewerRelease, ComparesNumberByNumber) {
  EXPECT_TRUE(newer_release("6.1.0-22-amd64", "6.1.0-9-amd64"));
  EXPECT_TRUE(newer_release("6.12.1", "6.9.12"));
  EXPECT_FALSE(newer_release("6.1.0-22-amd64", "6.1.0-22-amd64"));
}

TEST(OptionNumber, IsReadLikeTheKernelReadsIt) {
  EXPECT_EQ(parse_option_number("0x1F"), 31U);
  EXPECT_EQ(parse_option_number("010"), 8U);
  EXPECT_EQ(parse_option_number("10"), 10U);
  EXPECT_EQ(parse_option_number("0"), 0U);
  EXPECT_EQ(parse_option_number("1x"), std::nullopt);
}

}  // namespace
}  // namespace gantry::kernel_module
