// SPDX-License-Identifier: Apache-2.0
#include "net/kube/node_name.hpp"

#include "base/core/text.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gantry::kube {
namespace {

TEST(NodeName, IsWhatWasGivenThenTheEnvironmentsThenTheHosts) {
  ::setenv("NODE_NAME", "from-the-pod", 1);
  EXPECT_EQ(node_name("given"), "given");
  EXPECT_EQ(node_name(""), "from-the-pod");
  ::unsetenv("NODE_NAME");
  EXPECT_FALSE(node_name("").empty());
  EXPECT_EQ(node_name(""), to_lower(node_name("")));
}

}  // namespace
}  // namespace gantry::kube
