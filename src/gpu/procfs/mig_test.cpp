// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/mig.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::procfs {
namespace {

using test::Tree;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MigInstances, AreTheDirectoriesOfTheirGpu) {
  Tree tree;
  for (const char* path : {"gpu0/mig", "gpu10/mig/gi2/ci0", "gpu2/mig/gi12/ci1", "gpu2/mig/gi3/ci0",
                           "gpu2/mig/gi12/ci0", "mig"}) {
    tree.directory(std::string("proc/driver/nvidia/capabilities/") + path);
  }
  tree.file("proc/driver/nvidia/capabilities/gpu2/mig/gi3/access", "DeviceFileMinor: 30\n");
  const auto host = tree.host();
  EXPECT_FALSE(has_mig_instances(host, 0));
  EXPECT_FALSE(has_mig_instances(host, 1));
  EXPECT_TRUE(has_mig_instances(host, 2));
  EXPECT_THAT(gpu_instances(host, 2), ElementsAre(3, 12));
  EXPECT_THAT(gpus_with_mig_instances(host), ElementsAre(2, 10));
  EXPECT_THAT(list_mig_instances(host),
              ElementsAre("gpu2/gi3", "gpu2/gi3/ci0", "gpu2/gi12", "gpu2/gi12/ci0", "gpu2/gi12/ci1",
                          "gpu10/gi2", "gpu10/gi2/ci0"));
}

TEST(MigInstances, OtherNamesAreNotInstances) {
  Tree tree;
  for (const char* path : {"gpu0/mig/gi", "gpu0/mig/giant", "gpu0/mig/gi-1",
                           "gpu0/mig/gi99999999999", "gpux/mig/gi1", "gpu/mig/gi1", "gpu1/gi1"}) {
    tree.directory(std::string("proc/driver/nvidia/capabilities/") + path);
  }
  EXPECT_FALSE(has_mig_instances(tree.host(), 0));
  EXPECT_THAT(gpus_with_mig_instances(tree.host()), IsEmpty());
  EXPECT_THAT(list_mig_instances(tree.host()), IsEmpty());
}

TEST(MigInstances, ADriverWithoutCapabilitiesHasNone) {
  Tree tree;
  EXPECT_FALSE(has_mig_instances(tree.host(), 0));
  EXPECT_THAT(gpus_with_mig_instances(tree.host()), IsEmpty());
}

}  // namespace
}  // namespace gantry::procfs
