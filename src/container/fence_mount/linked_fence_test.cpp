// SPDX-License-Identifier: Apache-2.0
#include "container/fence_mount/linked_fence.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::fence_mount {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class InPlaceTest : public ::testing::Test {
 protected:
  InPlaceTest() {
    tree_.file("share/socket", "socket")
        .file("ours/cuda", "our cuda")
        .file("ours/nvml", "our nvml");
    tree_.file("driver/cuda", "driver's cuda");
  }
  FenceMounts fence_mounts() const {
    return {.share = tree_.path("share"),
            .fence_cuda = tree_.path("ours/cuda"),
            .fence_nvml = tree_.path("ours/nvml"),
            .real_cuda = tree_.path("driver/cuda")};
  }
  Result<LinkedFence> make() const {
    return LinkedFence::make(fence_mounts(), tree_.path("run/fence"));
  }
  std::string link(const std::string& name) const {
    return tree_.host().link("/run/fence/" + name).value_or("none");
  }

  test::Tree tree_;
};

TEST_F(InPlaceTest, LeadsToTheFenceAndTheFenceToTheDriver) {
  const auto made = make();
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(made->libraries(), tree_.path("run/fence/lib"));
  EXPECT_EQ(link("lib/libcuda.so.1"), tree_.path("ours/cuda"));
  EXPECT_EQ(link("lib/libnvidia-ml.so.1"), tree_.path("ours/nvml"));
  EXPECT_EQ(link("cuda"), tree_.path("driver/cuda"));
  EXPECT_EQ(link("nvml"), "none");
  EXPECT_EQ(link("socket"), tree_.path("share/socket"));
}

TEST_F(InPlaceTest, IsForOneAtATimeAndGoesWithIt) {
  {
    const auto first = make();
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(make().error().code(), Errc::Busy);
    EXPECT_THAT(*tree_.host().list("/run/fence"), ElementsAre("cuda", "lib", "socket"));
  }
  EXPECT_THAT(*tree_.host().list("/run/fence"), IsEmpty());
  EXPECT_TRUE(make().ok());
}

TEST_F(InPlaceTest, TakesThePlaceOfOneWhoseShareIsGone) {
  tree_.link("run/fence/socket", "/gone/socket").link("run/fence/cuda", "/gone/cuda");
  EXPECT_TRUE(make().ok());
}

}  // namespace
}  // namespace gantry::fence_mount
