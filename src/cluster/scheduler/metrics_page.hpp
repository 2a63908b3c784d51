// SPDX-License-Identifier: Apache-2.0
// /metrics of the scheduler, in Prometheus' text: what every GPU has promised under the names that
// HAMi's scheduler has for it, and how the scheduler itself does under our own.
#pragma once

#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/cluster_watcher.hpp"
#include "cluster/scheduler/counters.hpp"

#include <string>
#include <vector>

namespace gantry::scheduler {

struct MetricsInput {
  bool leading = false;
  bool ready = false;
  std::vector<ClusterWatcher::Kind> kinds;
};

std::string page(const ClusterCache& cache, const SchedulerCounters& counters,
                 const MetricsInput& facts);

void append_gpu_metrics(std::string& page, const ClusterCache& cache);
void append_scheduler_metrics(std::string& page, const ClusterCache& cache,
                              const SchedulerCounters& counters, const MetricsInput& facts);

// Backslash, quote and new line, as label values need them.
std::string label(std::string_view value);

}  // namespace gantry::scheduler
