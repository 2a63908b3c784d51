// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/pod_cache.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gantry::pod_shares {
namespace {

json::Document pod(std::string_view uid, std::string_view resource, std::string_view phase) {
  auto parsed = json::Document::parse(fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"d","uid":"{}"}},"status":{{"phase":"{}"}},)"
      R"("spec":{{"nodeName":"n","containers":[{{"name":"c","resources":{{"limits":{{"{}":"4"}}}}}}]}}}})",
      uid, phase, resource));
  EXPECT_TRUE(parsed.ok());
  return *std::move(parsed);
}

TEST(PodCache, HasThePodsThatAskForSharedGpus) {
  PodCache cache;
  cache.set(pod("u1", "aliyun.com/gpu-mem", "Pending"));
  cache.set(pod("u2", "cpu", "Running"));
  EXPECT_TRUE(cache.find("u1"));
  EXPECT_FALSE(cache.find("u2"));
  EXPECT_EQ(cache.all().size(), 1U);
}

TEST(PodCache, ForgetsWhatIsOverOrGone) {
  PodCache cache;
  cache.set(pod("u1", "aliyun.com/gpu-mem", "Running"));
  cache.set(pod("u2", "aliyun.com/gpu-mem", "Running"));
  cache.set(pod("u1", "aliyun.com/gpu-mem", "Succeeded"));
  cache.remove({.uid = "u2", .name_space = "d", .name = "p"});
  EXPECT_TRUE(cache.all().empty());
}

TEST(PodCache, IsCompleteAfterAWholeList) {
  PodCache cache;
  EXPECT_FALSE(cache.complete());
  cache.listed();
  EXPECT_TRUE(cache.complete());
}

}  // namespace
}  // namespace gantry::pod_shares
