// SPDX-License-Identifier: Apache-2.0
#include "node/labels/features_file.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::labels {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FeaturesFile, IsWrittenWholeAndReadableByAll) {
  test::Tree tree;
  const auto path = tree.path("/etc/kubernetes/node-feature-discovery/features.d/gfd");
  ASSERT_TRUE(write_features_file(path, {{"b", "2"}, {"a", "1"}}).ok());
  const auto host = tree.host();
  EXPECT_EQ(*host.read(kFeaturesFile), "a=1\nb=2\n");
  EXPECT_EQ(host.info(kFeaturesFile)->mode, 0644U);
  EXPECT_THAT(*host.list("/etc/kubernetes/node-feature-discovery/features.d"), ElementsAre("gfd"));
}

TEST(FeaturesFile, IsRemovedAndMayBeAbsent) {
  test::Tree tree;
  const auto path = tree.path("/features.d/gfd");
  ASSERT_TRUE(write_features_file(path, {{"a", "1"}}).ok());
  EXPECT_TRUE(remove_features_file(path).ok());
  EXPECT_THAT(*tree.host().list("/features.d"), IsEmpty());
  EXPECT_TRUE(remove_features_file(path).ok());
}

}  // namespace
}  // namespace gantry::labels
