// SPDX-License-Identifier: Apache-2.0
#include "base/core/object_ref.hpp"

#include <gtest/gtest.h>

namespace gantry {
namespace {

TEST(ObjectRef, IsShownAsNamespaceAndName) {
  EXPECT_EQ(to_string(PodRef{.uid = "u", .name_space = "team", .name = "train"}), "team/train");
  EXPECT_EQ(to_string(ObjectRef{.uid = "u", .name = "node-1"}), "/node-1");
}

TEST(ObjectRef, APodThatWasCreatedAgainIsAnotherOne) {
  const PodRef first{.uid = "u1", .name_space = "team", .name = "train"};
  EXPECT_EQ(first, (PodRef{.uid = "u1", .name_space = "team", .name = "train"}));
  EXPECT_NE(first, (PodRef{.uid = "u2", .name_space = "team", .name = "train"}));
}

}  // namespace
}  // namespace gantry
