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
  PodCache book;
  book.set(pod("u1", "aliyun.com/gpu-mem", "Pending"));
  book.set(pod("u2", "cpu", "Running"));
  EXPECT_TRUE(book.find("u1"));
  EXPECT_FALSE(book.find("u2"));
  EXPECT_EQ(book.all().size(), 1U);
}

TEST(PodCache, ForgetsWhatIsOverOrGone) {
  PodCache book;
  book.set(pod("u1", "aliyun.com/gpu-mem", "Running"));
  book.set(pod("u2", "aliyun.com/gpu-mem", "Running"));
  book.set(pod("u1", "aliyun.com/gpu-mem", "Succeeded"));
  book.remove({.uid = "u2", .name_space = "d", .name = "p"});
  EXPECT_TRUE(book.all().empty());
}

TEST(PodCache, IsCompleteAfterAWholeList) {
  PodCache book;
  EXPECT_FALSE(book.complete());
  book.listed();
  EXPECT_TRUE(book.complete());
}

}  // namespace
}  // namespace gantry::pod_shares
