// SPDX-License-Identifier: Apache-2.0
// schedule-speed WHAT [N]: measures the scheduler's decisions, without sockets and without an API
// server. Prints one line of JSON; bench/schedule makes a table of these lines.
//   extender NODES   filter and prioritize, request read and answer written; a bind's decision
//   world STEPS      1,000 nodes of 8 GPUs, pods that come and go, crashes; fails if a check fails
//   calm STEPS       the same without crashes; after a crash, lists take most of the time
//   packing          GPUs in use compared with the smallest possible number
#include "cluster/placement/cluster.hpp"
#include "cluster/scheduler/extender.hpp"
#include "support/simulated_cluster/cluster_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry {
namespace {

constexpr std::uint64_t kGiB = 1024;
constexpr std::array<std::uint64_t, 4> kSizes{140, 80, 48, 24};
constexpr int kBatches = 10;
constexpr int kInBatch = 200;

// Processor time of this thread: the goals are about one core, and the machine may be busy.
double now_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

std::uint64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::strtoull(line.c_str() + 6, nullptr, 10);
  return 0;
}

// The 99th percentile of the best batch, because the noise of a busy machine only adds time.
struct Times {
  std::vector<double> batch;
  double p50 = 1e12;
  double p99 = 1e12;

  void end_batch() {
    std::sort(batch.begin(), batch.end());
    p50 = std::min(p50, batch[batch.size() / 2]);
    p99 = std::min(p99, batch[batch.size() * 99 / 100]);
    batch.clear();
  }
};

podspec::NodeInfo facts_of(std::size_t n) {
  podspec::NodeInfo facts{.name = fmt::format("gpu-node-{:05}.cluster.example", n)};
  for (std::uint32_t i = 0; i < 8; ++i) {
    facts.cards.push_back(
        {.uuid = {fmt::format("GPU-{:08x}-{:04x}-4000-8000-{:012x}", n, i, n * 8 + i)},
         .index = i,
         .mib = kSizes[n % kSizes.size()] * kGiB,
         .model = "NVIDIA H200",
         .numa = static_cast<int>(i / 4),
         .links = std::vector<std::int32_t>(8, 18)});
  }
  return facts;
}

// As in the API server: a manifest of normal size, not only the fields used here.
std::string pod_text(std::size_t n, std::uint64_t gib, std::string_view node,
                     const std::string& placement) {
  const auto annotation =
      placement.empty()
          ? std::string()
          : fmt::format(R"("{}":{},)", podspec::kPlacementAnnotation, json::quote(placement));
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"pod-{0}","namespace":"team-{1}",)"
      R"("uid":"{0:08x}-0000-4000-8000-{0:012x}","resourceVersion":"{0}","labels":{{"app":"train",)"
      R"("pod-template-hash":"5d4f8c7b9"}},"annotations":{{{2}"gantry.dev/compute":"10"}}}},)"
      R"("spec":{{{3}"priority":0,"serviceAccountName":"default","containers":[{{"name":"main",)"
      R"("image":"registry.example/train:1","command":["python","train.py"],"env":[{{"name":"A",)"
      R"("value":"1"}},{{"name":"B","value":"2"}}],"resources":{{"limits":{{"cpu":"4","memory":)"
      R"("16Gi","aliyun.com/gpu-mem":"{4}"}}}},"volumeMounts":[{{"name":"data","mountPath":"/d"}}])"
      R"(}}],"volumes":[{{"name":"data","emptyDir":{{}}}}]}},"status":{{"phase":"Pending"}}}})",
      n, n % 40, annotation, node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", node), gib);
}

json::Document parsed(std::string text) {
  auto document = json::Document::parse(std::move(text));
  GANTRY_ASSERT(document.ok());
  return *std::move(document);
}

void fill(scheduler::ClusterCache& cache, const std::vector<std::string>& names, std::size_t pods,
          std::mt19937& random) {
  const scheduler::TimePoint now{};
  for (std::size_t i = 0; i < pods; ++i) {
    const auto& node = names[random() % names.size()];
    const auto gib = 1 + random() % 30;
    const auto ask = scheduler::parse_pod_request(pod_text(i, gib, "", ""));
    const auto promised = cache.assumed(**ask, node, 0, now);
    if (!promised) continue;
    const auto bound = parsed(pod_text(i, gib, node, podspec::to_json(promised->placement)));
    GANTRY_ASSERT(cache.set_pod(bound.root(), now).ok());
  }
}

int extender(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::string> names;
  scheduler::ClusterCache cache;
  for (std::size_t i = 0; i < count; ++i) {
    const auto facts = facts_of(i);
    const auto node = parsed(fmt::format(
        R"({{"metadata":{{"name":"{}","annotations":{{"{}":{}}}}},"status":{{}}}})", facts.name,
        podspec::kSharedGpusAnnotation, json::quote(podspec::to_json(facts))));
    GANTRY_ASSERT(cache.set_node(node.root()).ok());
    names.push_back(facts.name);
  }
  const std::size_t pods = count * 5;
  fill(cache, names, pods, random);
  std::shuffle(names.begin(), names.end(), random);  // zones take turns in the real list

  scheduler::SchedulerCounters counters;
  scheduler::Extender extender(cache, counters, {});
  const auto resident = resident_kib();
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "\"" : ",\"") + name + "\"";
  Times both;
  Times bind;
  std::size_t uid = pods;
  for (int batch = 0; batch < kBatches; ++batch) {
    for (int i = 0; i < kInBatch; ++i) {
      ++uid;
      const auto pod = pod_text(uid, 1 + random() % 60, "", "");
      const auto body = fmt::format(R"({{"Pod":{},"Nodes":null,"NodeNames":[{}]}})", pod, list);
      auto start = now_us();
      const auto filtered = extender.filter(body);
      const auto scored = extender.prioritize(body);
      both.batch.push_back(now_us() - start);
      GANTRY_ASSERT(filtered.body.size() > 100 && scored.body.size() > 100);
      const auto ask = scheduler::parse_pod_request(pod);
      start = now_us();
      const auto promised =
          cache.assumed(**ask, names[random() % count], 0, scheduler::TimePoint{});
      bind.batch.push_back(now_us() - start);
      if (promised) cache.release((*ask)->pod.uid);
    }
    both.end_batch();
    bind.end_batch();
  }
  fmt::print(
      "{{\"nodes\": {}, \"pods\": {}, \"p50_ms\": {:.3f}, \"p99_ms\": {:.3f}, \"bind_p50_ms\": "
      "{:.4f}, \"bind_p99_ms\": {:.4f}, \"idle_mb\": {:.1f}, \"resident_mb\": {:.1f}}}\n",
      count, cache.pods(), both.p50 / 1000, both.p99 / 1000, bind.p50 / 1000, bind.p99 / 1000,
      static_cast<double>(resident) / 1024, static_cast<double>(resident_kib()) / 1024);
  return 0;
}

int world(int steps, const simulate::SimulationOptions& options) {
  const auto start = now_us();
  simulate::ClusterSimulation world(options);
  for (int i = 0; i < steps; ++i) {
    if (const auto done = world.step(); !done) {
      fmt::print(stderr, "step {}: {}\n", i, done.error().text());
      return 1;
    }
  }
  const auto seconds = (now_us() - start) / 1e6;
  const auto placed = world.counts().placed;
  auto end = world.settle();
  if (end) end = world.empty();
  if (!end) fmt::print(stderr, "at the end: {}\n", end.error().text());
  const auto& counts = world.counts();
  fmt::print(
      "{{\"steps\": {}, \"placed\": {}, \"left\": {}, \"refused\": {}, \"over_quota\": {}, "
      "\"crashes\": {}, \"lists\": {}, \"seconds\": {:.3f}, \"placed_per_s\": {:.0f}}}\n",
      steps, counts.placed, counts.left, counts.refused, counts.over_quota, counts.crashes,
      counts.lists, seconds, static_cast<double>(placed) / seconds);
  return end ? 0 : 1;
}

// Places pods of mixed sizes in random order by score, with ties broken at random as in the
// kube-scheduler; no pod leaves. With cards of one size it compares the cards in use with the
// smallest possible number. With several sizes it compares the memory of the cards in use with the
// requested memory.
void pack(std::span<const std::uint64_t> sizes, std::string_view name, bool last) {
  constexpr std::size_t kNodes = 250;
  constexpr std::array<std::uint64_t, 14> kAsks{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40};
  std::mt19937 random(11);
  placement::Cluster cluster;
  std::vector<std::string> names;
  std::uint64_t capacity = 0;
  for (std::size_t i = 0; i < kNodes; ++i) {
    auto facts = facts_of(i);
    for (auto& card : facts.cards) card.mib = sizes[i % sizes.size()] * kGiB;
    capacity += 8 * sizes[i % sizes.size()];
    cluster.set_node(facts);
    names.push_back(facts.name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::vector<placement::Fit> fits;
  std::uint64_t asked = 0;
  std::size_t large = 0;  // pods of which no two fit on one card
  for (std::size_t n = 0; asked < capacity * 85 / 100; ++n) {
    podspec::PodRequest ask{
        .pod = {.uid = fmt::format("{}", n), .name_space = "team", .name = "pod"}};
    const auto fitting = kAsks.size() - (sizes.back() < 40 ? 3 : 0);
    const auto gib = kAsks[random() % fitting];
    ask.containers.push_back(
        {.container = "main", .memory = {.kind = podspec::Amount::Kind::Units, .value = gib}});
    cluster.fit_all(ask, views, fits);
    const auto first = random() % fits.size();
    std::size_t best = first;
    for (std::size_t i = 0; i < fits.size(); ++i)
      if (const auto at = (first + i) % fits.size(); fits[at].score > fits[best].score) best = at;
    GANTRY_ASSERT(cluster.reserve(ask, views[best]).ok());
    asked += gib;
    large += gib * 2 > sizes.front() ? 1 : 0;
  }
  std::size_t used = 0;
  std::uint64_t opened = 0;
  for (const auto& node : names) {
    for (const auto& card : cluster.view(node).cards) {
      if (card.used_slots == 0) continue;
      ++used;
      opened += card.facts.mib / kGiB;
    }
  }
  const auto fewest = std::max<std::uint64_t>((asked + sizes.front() - 1) / sizes.front(), large);
  const double beyond = sizes.size() == 1
                            ? static_cast<double>(used) / static_cast<double>(fewest)
                            : static_cast<double>(opened) / static_cast<double>(asked);
  fmt::print("\"{}\": {{\"gpus\": {}, \"beyond_percent\": {:.2f}}}{}", name, used,
             (beyond - 1) * 100, last ? "" : ", ");
}

int packing() {
  fmt::print("{{");
  pack(std::array<std::uint64_t, 1>{80}, "one size", false);
  pack(std::array<std::uint64_t, 1>{140}, "large", false);
  pack(kSizes, "mixed", true);
  fmt::print("}}\n");
  return 0;
}

}  // namespace
}  // namespace gantry

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto number = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (what == "extender") return gantry::extender(number > 0 ? number : 5000);
  if (what == "packing") return gantry::packing();
  const int steps = number > 0 ? static_cast<int>(number) : 100'000;
  if (what == "world") return gantry::world(steps, {.seed = 2026, .log = false});
  if (what == "calm")
    return gantry::world(steps, {.seed = 2026, .crash = 0, .broken = 0, .log = false});
  fmt::print(stderr,
             "usage: schedule-speed extender [NODES] | world [STEPS] | calm [STEPS] |"
             " packing\n");
  return 2;
}
