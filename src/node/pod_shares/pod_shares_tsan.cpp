// SPDX-License-Identifier: Apache-2.0
// The cache of pods under the thread sanitizer: one thread tells, as the informer does, others
// read.
#include "node/pod_shares/pod_cache.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace gantry::pod_shares {
namespace {

constexpr int kRounds = 300;
constexpr int kPods = 8;

json::Document pod(int number, std::string_view phase) {
  auto parsed = json::Document::parse(fmt::format(
      R"({{"metadata":{{"name":"p{0}","namespace":"d","uid":"u{0}"}},"status":{{"phase":"{1}"}},)"
      R"("spec":{{"containers":[{{"name":"c","resources":{{"limits":{{"aliyun.com/gpu-mem":"4"}}}}}}]}}}})",
      number, phase));
  EXPECT_TRUE(parsed.ok());
  return *std::move(parsed);
}

// A read returns a whole pod or none.
void read(const PodCache& cache, const std::atomic<bool>& done) {
  while (!done) {
    for (const auto& text : cache.all()) EXPECT_TRUE(json::Document::parse(text).ok());
    for (int i = 0; i < kPods; ++i) {
      const auto found = cache.find(fmt::format("u{}", i));
      if (!found) continue;
      const auto parsed = json::Document::parse(*found);
      ASSERT_TRUE(parsed.ok());
      EXPECT_EQ((*parsed)["metadata"]["name"].string(), fmt::format("p{}", i));
    }
    if (cache.complete()) {
      EXPECT_LE(cache.all().size(), std::size_t{kPods});
    }
  }
}

TEST(BookThreads, ReadWholePodsWhileTheInformerTells) {
  PodCache cache;
  std::atomic<bool> done{false};
  std::jthread one([&] { read(cache, done); });
  std::jthread other([&] { read(cache, done); });
  for (int round = 0; round < kRounds; ++round) {
    const int number = round % kPods;
    cache.set(pod(number, round % 5 == 4 ? "Succeeded" : "Running"));
    if (round % 7 == 6) cache.remove({.uid = fmt::format("u{}", number)});
    if (round == kRounds / 2) cache.listed();
  }
  done = true;
  one.join();
  other.join();
  EXPECT_TRUE(cache.complete());
}

}  // namespace
}  // namespace gantry::pod_shares
