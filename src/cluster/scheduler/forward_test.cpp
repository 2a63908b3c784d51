// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/forward.hpp"

#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

TEST(Identity, SaysWhereTheReplicaListens) {
  EXPECT_EQ(lease_identity("pod-1", "10.0.0.5", 12345), "pod-1@10.0.0.5:12345");
  EXPECT_EQ(lease_identity("pod-1", "fd00::5", 12345), "pod-1@[fd00::5]:12345");
  EXPECT_EQ(lease_identity("pod-1", "", 12345), "pod-1");
  const auto four = endpoint_of_identity("pod-1@10.0.0.5:12345");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->host, "10.0.0.5");
  EXPECT_EQ(four->port, 12345);
  const auto six = endpoint_of_identity("pod-1@[fd00::5]:12345");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, "fd00::5");
}

TEST(Identity, WithoutAnAddressNothingIsHandedOn) {
  for (const auto* name : {"", "pod-1", "pod-1@", "pod-1@:80", "pod-1@host", "a@b:0"})
    EXPECT_FALSE(endpoint_of_identity(name)) << name;
}

}  // namespace
}  // namespace gantry::scheduler
