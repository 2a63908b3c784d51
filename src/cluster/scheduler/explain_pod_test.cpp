// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/explain_pod.hpp"

#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

using ::testing::HasSubstr;

TEST(PodReasons, OneLineForEachNodeWhereItFitsFirst) {
  ClusterCache cache;
  ASSERT_TRUE(cache.set_node(node_object("a-full", {40}).root()).ok());
  ASSERT_TRUE(cache.set_node(node_object("b-free", {40}).root()).ok());
  ASSERT_TRUE(cache.set_node(node_object("c-small", {8}).root()).ok());
  ASSERT_TRUE(cache
                  .set_pod(pod_object({.uid = "x",
                                       .gpu_mem = "30",
                                       .node = "a-full",
                                       .placement = on_card("GPU-a-full-0", 30)})
                               .root(),
                           {})
                  .ok());
  const auto ask = **podspec::parse_request(pod_object({.uid = "a", .gpu_mem = "20"}).root());
  const auto reasons = explain_pod(cache, ask);
  ASSERT_EQ(reasons.nodes.size(), 3U);
  EXPECT_EQ(reasons.nodes[0].node, "b-free");
  EXPECT_EQ(reasons.nodes[1].node, "a-full");
  EXPECT_TRUE(reasons.nodes[1].resolvable);
  EXPECT_EQ(reasons.nodes[2].node, "c-small");
  EXPECT_THAT(to_text(reasons), HasSubstr("team/pod-a: fits on 1 of 3 nodes\nb-free: fits"));
  const auto document = parsed(to_json(reasons));
  EXPECT_EQ(document["nodes"].element(0)["fits"].boolean(), true);
  EXPECT_EQ(document["nodes"].element(1)["reason"].string(), reasons.nodes[1].sentence);
}

TEST(PodReasons, WhatIsDoneToMakeRoomIsALineOfItsOwn) {
  const PodReasons reasons{.pod = {.name_space = "team", .name = "a"}, .room = "team/b is evicted"};
  EXPECT_THAT(to_text(reasons), HasSubstr("fits on 0 of 0 nodes\nroom: team/b is evicted\n"));
  EXPECT_EQ(parsed(to_json(reasons))["room"].string(), "team/b is evicted");
}

TEST(PodReasons, APodThatIsSomewhereSaysWhere) {
  EXPECT_EQ(to_text({.pod = {.name_space = "team", .name = "a"}, .on_node = "n1"}),
            "team/a: is on node n1\n");
  EXPECT_EQ(to_text({.pod = {.name_space = "team", .name = "a"}, .problem = "no\nsuch"}),
            "team/a: no\\x0asuch\n");
}

}  // namespace
}  // namespace gantry::scheduler
