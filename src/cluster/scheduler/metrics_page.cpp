// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/metrics_page.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <utility>

namespace gantry::scheduler {
namespace {

void head(std::string& page, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(page), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

template <class Value>
void single(std::string& page, std::string_view name, std::string_view type, std::string_view help,
            Value value) {
  head(page, name, type, help);
  fmt::format_to(std::back_inserter(page), "{} {}\n", name, value);
}

void append_verbs(std::string& page, const SchedulerCounters& counters) {
  const std::array<std::pair<std::string_view, const AtomicHistogram*>, 6> verbs = {{
      {"filter", &counters.filter},
      {"prioritize", &counters.prioritize},
      {"preempt", &counters.preempt},
      {"bind", &counters.bind},
      {"decision", &counters.decision},
      {"admit", &counters.admit},
  }};
  constexpr std::string_view kSeconds = "gantry_scheduler_request_duration_seconds";
  head(page, kSeconds, "histogram",
       "Time to answer a request; decision: a bind without the time of its Binding");
  for (const auto& [verb, histogram] : verbs) histogram->append(page, kSeconds, verb);
  constexpr std::string_view kFailures = "gantry_scheduler_request_failures_total";
  head(page, kFailures, "counter", "Requests that were answered with an error");
  for (const auto& [verb, histogram] : verbs) {
    fmt::format_to(std::back_inserter(page), "{}{{verb=\"{}\"}} {}\n", kFailures, verb,
                   histogram->failures());
  }
}

void append_kinds(std::string& page, const std::vector<ClusterWatcher::Kind>& kinds) {
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help,
                          auto value) {
    head(page, name, type, help);
    for (const auto& kind : kinds) {
      fmt::format_to(std::back_inserter(page), "{}{{resource=\"{}\"}} {}\n", name, kind.name,
                     value(kind));
    }
  };
  family("gantry_scheduler_watch_silence_seconds", "gauge",
         "Seconds since the API server last sent something about the resource",
         [](const ClusterWatcher::Kind& kind) {
           return static_cast<double>(kind.silence.count()) / 1000;
         });
  family("gantry_scheduler_objects", "gauge", "Objects of the resource in the cache",
         [](const ClusterWatcher::Kind& kind) { return kind.objects; });
  family("gantry_scheduler_lists_total", "counter", "Full lists read from the API server",
         [](const ClusterWatcher::Kind& kind) { return kind.lists; });
  family("gantry_scheduler_watch_events_total", "counter", "Watch events received",
         [](const ClusterWatcher::Kind& kind) { return kind.events; });
  family("gantry_scheduler_watch_failures_total", "counter", "Lists and watches that failed",
         [](const ClusterWatcher::Kind& kind) { return kind.failures; });
}

}  // namespace

void append_scheduler_metrics(std::string& page, const ClusterCache& cache,
                              const SchedulerCounters& counters, const MetricsInput& facts) {
  single(page, "gantry_scheduler_leader", "gauge", "1 if this replica is the leader",
         facts.leading ? 1 : 0);
  single(page, "gantry_scheduler_ready", "gauge", "1 if the state of the cluster has been read",
         facts.ready ? 1 : 0);
  single(page, "gantry_scheduler_pods_bound_total", "counter", "Pods bound to a node",
         counters.bound.load());
  single(page, "gantry_scheduler_bindings_unanswered_total", "counter",
         "Bindings whose result was unknown when the request timed out", counters.unknown.load());
  single(page, "gantry_scheduler_bad_requests_total", "counter",
         "Requests for pods whose GPU request is not valid", counters.invalid_requests.load());
  single(page, "gantry_scheduler_pods_evicted_total", "counter",
         "Pods evicted to make room for a pod of higher priority", counters.evicted.load());
  single(page, "gantry_scheduler_promises", "gauge",
         "Assumed pods: bound, but the watch has not shown it yet", cache.assumed_pods().size());
  append_verbs(page, counters);
  append_kinds(page, facts.kinds);
  head(page, "gantry_build_info", "gauge", "Always 1; the version is a label");
  fmt::format_to(std::back_inserter(page), "gantry_build_info{{version=\"{}\"}} 1\n",
                 GANTRY_VERSION);
}

std::string page(const ClusterCache& cache, const SchedulerCounters& counters,
                 const MetricsInput& facts) {
  std::string text;
  append_scheduler_metrics(text, cache, counters, facts);
  append_gpu_metrics(text, cache);
  return text;
}

}  // namespace gantry::scheduler
