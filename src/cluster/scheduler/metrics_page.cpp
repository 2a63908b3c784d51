// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/metrics_page.hpp"

#include <array>
#include <utility>

namespace gantry::scheduler {
namespace {

using prometheus::label;
using prometheus::MetricInfo;
using prometheus::MetricsWriter;
using prometheus::MetricType;

constexpr auto kGauge = MetricType::Gauge;
constexpr auto kCounter = MetricType::Counter;

constexpr MetricInfo kLeader{"gantry_scheduler_leader", kGauge, "1 if this replica is the leader"};
constexpr MetricInfo kReady{"gantry_scheduler_ready", kGauge,
                            "1 if the state of the cluster has been read"};
constexpr MetricInfo kBound{"gantry_scheduler_pods_bound_total", kCounter, "Pods bound to a node"};
constexpr MetricInfo kUnanswered{"gantry_scheduler_bindings_unanswered_total", kCounter,
                                 "Bindings whose result was unknown when the request timed out"};
constexpr MetricInfo kBadRequests{"gantry_scheduler_bad_requests_total", kCounter,
                                  "Requests for pods whose GPU request is not valid"};
constexpr MetricInfo kEvicted{"gantry_scheduler_pods_evicted_total", kCounter,
                              "Pods evicted to make room for a pod of higher priority"};
constexpr MetricInfo kAssumed{"gantry_scheduler_promises", kGauge,
                              "Assumed pods: bound, but the watch has not shown it yet"};
constexpr MetricInfo kRequestTime{
    "gantry_scheduler_request_duration_seconds", MetricType::Histogram,
    "Time to answer a request; decision: a bind without the time of its Binding"};
constexpr MetricInfo kFailures{"gantry_scheduler_request_failures_total", kCounter,
                               "Requests that were answered with an error"};
constexpr MetricInfo kSilence{
    "gantry_scheduler_watch_silence_seconds", kGauge,
    "Seconds since the API server last sent something about the resource"};
constexpr MetricInfo kObjects{"gantry_scheduler_objects", kGauge,
                              "Objects of the resource in the cache"};
constexpr MetricInfo kLists{"gantry_scheduler_lists_total", kCounter,
                            "Full lists read from the API server"};
constexpr MetricInfo kEvents{"gantry_scheduler_watch_events_total", kCounter,
                             "Watch events received"};
constexpr MetricInfo kWatchFailures{"gantry_scheduler_watch_failures_total", kCounter,
                                    "Lists and watches that failed"};

void add_verbs(MetricsWriter& page, const SchedulerCounters& counters) {
  const std::array<std::pair<std::string_view, const AtomicHistogram*>, 6> verbs = {{
      {"filter", &counters.filter},
      {"prioritize", &counters.prioritize},
      {"preempt", &counters.preempt},
      {"bind", &counters.bind},
      {"decision", &counters.decision},
      {"admit", &counters.admit},
  }};
  page.begin(kRequestTime);
  for (const auto& [verb, histogram] : verbs) {
    const auto values = histogram->values();
    page.histogram(label("verb", verb),
                   {AtomicHistogram::kBounds, values.buckets, values.count, values.sum_s});
  }
  page.begin(kFailures);
  for (const auto& [verb, histogram] : verbs)
    page.series(label("verb", verb), histogram->failures());
}

void add_kinds(MetricsWriter& page, const std::vector<ClusterWatcher::Kind>& kinds) {
  const auto family = [&](const MetricInfo& metric, auto value) {
    page.begin(metric);
    for (const auto& kind : kinds) page.series(label("resource", kind.name), value(kind));
  };
  using Kind = ClusterWatcher::Kind;
  family(kSilence,
         [](const Kind& kind) { return static_cast<double>(kind.silence.count()) / 1000; });
  family(kObjects, [](const Kind& kind) { return std::uint64_t{kind.objects}; });
  family(kLists, [](const Kind& kind) { return kind.lists; });
  family(kEvents, [](const Kind& kind) { return kind.events; });
  family(kWatchFailures, [](const Kind& kind) { return kind.failures; });
}

}  // namespace

void add_scheduler_metrics(MetricsWriter& page, const ClusterCache& cache,
                           const SchedulerCounters& counters, const MetricsInput& facts) {
  page.single(kLeader, std::uint64_t{facts.leading ? 1U : 0U});
  page.single(kReady, std::uint64_t{facts.ready ? 1U : 0U});
  page.single(kBound, counters.bound.load());
  page.single(kUnanswered, counters.unknown.load());
  page.single(kBadRequests, counters.invalid_requests.load());
  page.single(kEvicted, counters.evicted.load());
  page.single(kAssumed, std::uint64_t{cache.assumed_pods().size()});
  add_verbs(page, counters);
  add_kinds(page, facts.kinds);
  page.begin(prometheus::kBuildInfo);
  page.series(label("version", GANTRY_VERSION), std::uint64_t{1});
}

std::string page(const ClusterCache& cache, const SchedulerCounters& counters,
                 const MetricsInput& facts) {
  MetricsWriter writer(kPageLimit);
  add_scheduler_metrics(writer, cache, counters, facts);
  add_gpu_metrics(writer, cache);
  return writer.left_out() == 0 ? writer.take() : writer.take(prometheus::kSeriesLeftOut);
}

}  // namespace gantry::scheduler
