// SPDX-License-Identifier: Apache-2.0
#include "node/agent/feature_owners.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::agent {
namespace {

std::vector<labels::NodeFeatureOwner> owners(const char* text) {
  auto pod = json::Document::parse(text);
  EXPECT_TRUE(pod.ok());
  return daemon_set_owners(*pod);
}

TEST(Owners, AreTheDaemonSetAndThePod) {
  const auto found = owners(
      R"({"metadata":{"name":"gantry-x","uid":"p-1","ownerReferences":[
          {"apiVersion":"apps/v1","kind":"DaemonSet","name":"gantry","uid":"d-1","controller":true}]}})");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].api_version, "apps/v1");
  EXPECT_EQ(found[0].name, "gantry");
  EXPECT_EQ(found[0].uid, "d-1");
  EXPECT_TRUE(found[0].controller);
  EXPECT_EQ(found[1].kind, "Pod");
  EXPECT_EQ(found[1].api_version, "v1");
  EXPECT_EQ(found[1].uid, "p-1");
  EXPECT_FALSE(found[1].controller);
}

TEST(Owners, APodOfNoDaemonSetOwnsNothing) {
  EXPECT_TRUE(owners(R"({"metadata":{"name":"a","uid":"p","ownerReferences":[
                         {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u"}]}})")
                  .empty());
  EXPECT_TRUE(owners(R"({"metadata":{"name":"a","uid":"p"}})").empty());
  EXPECT_TRUE(owners(R"({})").empty());
}

}  // namespace
}  // namespace gantry::agent
