// SPDX-License-Identifier: Apache-2.0
// The scheduler's /metrics in the Prometheus text format: the allocation of every GPU under the
// names of HAMi's scheduler, and the scheduler's own metrics under our names.
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

// Escapes backslash, quote and newline for a label value.
std::string label(std::string_view value);

}  // namespace gantry::scheduler
