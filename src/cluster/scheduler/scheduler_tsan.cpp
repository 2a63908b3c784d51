// SPDX-License-Identifier: Apache-2.0
// The extender as it is in service, under the thread sanitizer: several requests at once, the watch
// of pods, nodes and quotas, the reconciler of assumed pods, and a reader.
#include "cluster/scheduler/binder.hpp"
#include "cluster/scheduler/extender.hpp"
#include "cluster/scheduler/objects_for_test.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

namespace gantry::scheduler {
namespace {

constexpr int kBinders = 4;
constexpr int kPodsEach =
    24;  // of 10 GiB: all of them would need 960 of the 640 GiB that there are
constexpr std::uint64_t kCard = 80;

// Takes Bindings, and shows them to the watch.
class Server {
 public:
  kube::BindResult bind(const kube::Binding& binding) {
    const std::lock_guard hold(mutex_);
    ++bindings_;
    if (bindings_ % 11 == 0) return {.bound = kube::BindOutcome::Refused, .text = "not now"};
    if (bindings_ % 13 == 0) return {.bound = kube::BindOutcome::Unknown, .text = "no answer"};
    bound_.push_back(binding);
    return {.bound = kube::BindOutcome::Done};
  }
  std::optional<kube::Binding> next() {
    const std::lock_guard hold(mutex_);
    if (bound_.empty()) return std::nullopt;
    auto binding = std::move(bound_.front());
    bound_.pop_front();
    return binding;
  }

 private:
  std::mutex mutex_;
  int bindings_ = 0;
  std::deque<kube::Binding> bound_;
};

class ThreadsTest : public ::testing::Test {
 protected:
  ThreadsTest() {
    EXPECT_TRUE(cache.set_node(node_object("n1", {kCard, kCard, kCard, kCard}).root()).ok());
    EXPECT_TRUE(cache.set_node(node_object("n2", {kCard, kCard, kCard, kCard}).root()).ok());
  }

  void ask_and_bind(int binder_number) {
    for (int i = 0; i < kPodsEach; ++i) {
      const auto uid = fmt::format("u{}-{}", binder_number, i);
      const auto pod = pod_text({.uid = uid, .gpu_mem = "10"});
      EXPECT_TRUE(cache.set_pod(parsed(pod).root(), std::chrono::steady_clock::now()).ok());
      const auto body = fmt::format(R"({{"Pod":{},"NodeNames":["n1","n2"]}})", pod);
      EXPECT_EQ(extender.filter(body).status, 200);
      EXPECT_EQ(extender.prioritize(body).status, 200);
      const ExtenderBindingArgs args{
          .pod = {.uid = uid, .name_space = "team", .name = "pod-" + uid},
          .node = (binder_number + i) % 2 == 0 ? "n1" : "n2"};
      if (binder.bind(args).ok()) ++bound;
    }
  }

  // What was bound is shown as a pod with its node; every third leaves again.
  void watch() {
    int seen = 0;
    int round = 0;
    while (!done) {
      const auto now = std::chrono::steady_clock::now();
      if (const auto binding = server.next()) {
        const auto pod = pod_text(
            {.uid = binding->pod.uid,
             .gpu_mem = "10",
             .node = binding->node,
             .placement = binding->annotations.at(std::string(podspec::kPlacementAnnotation))});
        EXPECT_TRUE(cache.set_pod(parsed(pod).root(), now).ok());
        if (++seen % 3 == 0) cache.remove_pod(binding->pod.uid, now);
      }
      EXPECT_TRUE(cache.set_node(node_object("n1", {kCard, kCard, kCard, kCard}).root()).ok());
      if (++round % 2 == 0) {
        EXPECT_TRUE(cache
                        .set_unhealthy_gpus(parsed(R"({"metadata":{"name":"unhealthy-gpu-n1"},)"
                                                   R"("data":{"gpus":"1"}})")
                                                .root())
                        .ok());
      } else {
        cache.remove_unhealthy_gpus("unhealthy-gpu-n1");
      }
      EXPECT_TRUE(cache
                      .set_namespace(parsed(R"({"metadata":{"name":"team","annotations":)"
                                            R"({"gantry.dev/gpu-memory-quota":"400Gi"}}})")
                                         .root())
                      .ok());
    }
  }

  void read_views() {
    while (!done) {
      binder.reconcile(std::chrono::steady_clock::now());
      EXPECT_EQ(extender.inspect().status, 200);
      for (const auto& name : cache.nodes()) {
        for (const auto& card : cache.view(name).cards) EXPECT_LE(card.used_mib, kCard * 1024);
      }
      EXPECT_LE(cache.assumed_pods().size(), std::size_t{kBinders * kPodsEach});
      EXPECT_LE(cache.quotas().size(), 1U);
    }
  }

  ClusterCache cache;
  SchedulerCounters counters;
  Server server;
  Extender extender{cache, counters, {}};
  Binder binder{cache,
                counters,
                {.bind = [this](const kube::Binding& binding) { return server.bind(binding); },
                 .read = [](const std::string&, const std::string&) -> Result<json::Document> {
                   return Error(Errc::NotFound, "no such pod");
                 },
                 .lead = []() -> Result<std::chrono::milliseconds> {
                   return std::chrono::milliseconds(14'000);
                 }}};
  std::atomic<bool> done{false};
  std::atomic<int> bound{0};
};

TEST_F(ThreadsTest, NoCardIsEverGivenTwiceWhileEverybodyTalksAtOnce) {
  std::jthread watcher([this] { watch(); });
  std::jthread reader([this] { read_views(); });
  {
    std::vector<std::jthread> binders;
    for (int i = 0; i < kBinders; ++i) binders.emplace_back([this, i] { ask_and_bind(i); });
  }
  done = true;
  watcher.join();
  reader.join();
  EXPECT_GT(bound.load(), 20);
  EXPECT_TRUE(binder.stop(std::chrono::seconds(5)));
  EXPECT_GT(counters.filter.count(), 0U);
}

}  // namespace
}  // namespace gantry::scheduler
