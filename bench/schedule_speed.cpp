// SPDX-License-Identifier: Apache-2.0
// schedule-speed: what the scheduler's decisions take, without HTTP and without an API server.
// Prints one line of JSON. bench/schedule puts it into its table.
#include "place/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace gantry {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kGiB = 1024;
constexpr std::array<std::uint64_t, 4> kSizes{140, 80, 48, 24};

ask::NodeFacts node(std::size_t n) {
  ask::NodeFacts facts{.name = fmt::format("gpu-node-{:05}.cluster.example", n)};
  facts.address = fmt::format("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255);
  for (std::uint32_t i = 0; i < 8; ++i) {
    facts.cards.push_back({.uuid = fmt::format("GPU-{:08x}-{:04x}-4000-8000-{:012x}", n, i, n * 8 + i),
                           .index = i,
                           .mib = kSizes[n % kSizes.size()] * kGiB,
                           .model = "NVIDIA H200",
                           .numa = static_cast<int>(i / 4),
                           .links = std::vector<std::int32_t>(8, 18)});
  }
  return facts;
}

ask::PodAsk pod(std::size_t n, std::uint64_t gib, std::uint32_t cores) {
  ask::PodAsk ask{.uid = fmt::format("{:08x}-0000-4000-8000-{:012x}", n, n),
                  .name_space = fmt::format("team-{}", n % 40),
                  .name = fmt::format("pod-{}", n)};
  ask.containers.push_back({.container = "main",
                            .memory = {.kind = ask::Amount::Kind::Units, .value = gib},
                            .cores = cores,
                            .resource = std::string(ask::kGpuMem)});
  return ask;
}

double percentile(std::vector<double>& times, double part) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(static_cast<double>(times.size() - 1) * part)];
}

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace
}  // namespace gantry

int main(int argc, char** argv) {
  using namespace gantry;
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 5000;
  std::mt19937 random(7);
  place::Cluster cluster;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const auto facts = node(i);
    cluster.set_node(facts);
    names.push_back(facts.name);
  }
  std::size_t pods = 0;
  for (std::size_t i = 0; i < count * 8; ++i) {
    const auto ask = pod(pods, 1 + random() % 40, random() % 2 == 0 ? 0 : 10);
    if (cluster.reserve(ask, names[random() % count])) ++pods;
  }
  std::shuffle(names.begin(), names.end(), random);
  std::string text;
  for (const auto& name : names) text += name;
  std::vector<std::string_view> views;
  for (std::size_t at = 0; const auto& name : names) {
    views.push_back(std::string_view(text).substr(at, name.size()));
    at += name.size();
  }
  std::vector<double> filter;
  std::vector<double> bind;
  std::vector<place::Fit> fits;
  for (int i = 0; i < 1000; ++i) {
    std::rotate(views.begin(), views.begin() + 137, views.end());
    const auto ask = pod(pods + 1, 1 + random() % 80, random() % 3 == 0 ? 30 : 0);
    auto start = Clock::now();
    cluster.fit_all(ask, views, fits);
    filter.push_back(since(start));
    const auto best = std::max_element(fits.begin(), fits.end(), [](const auto& a, const auto& b) {
      return a.score < b.score;
    });
    start = Clock::now();
    const auto placed = cluster.reserve(ask, views[static_cast<std::size_t>(best - fits.begin())]);
    bind.push_back(since(start));
    if (placed) ++pods;
  }
  fmt::print("{{\"nodes\": {}, \"pods\": {}, \"fit_p50_us\": {:.0f}, \"fit_p99_us\": {:.0f}, \"reserve_p50_us\": {:.1f}, \"reserve_p99_us\": {:.1f}}}\n", count, pods,
             percentile(filter, 0.5), percentile(filter, 0.99), percentile(bind, 0.5), percentile(bind, 0.99));
  std::system("grep VmRSS /proc/self/status");
}
