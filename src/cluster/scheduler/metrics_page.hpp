// SPDX-License-Identifier: Apache-2.0
// The scheduler's /metrics in the Prometheus text format: the allocation of every GPU under the
// names of HAMi's scheduler, and the scheduler's own metrics under our names.
#pragma once

#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/cluster_watcher.hpp"
#include "cluster/scheduler/counters.hpp"
#include "net/prometheus/metrics_writer.hpp"

#include <string>
#include <vector>

namespace gantry::scheduler {

struct MetricsInput {
  bool leading = false;
  bool ready = false;
  std::vector<ClusterWatcher::Kind> kinds;
};

// Never grows beyond kPageLimit: further series are left out, and then gantry_series_left_out says
// how many.
inline constexpr std::size_t kPageLimit = std::size_t{256} << 20;
std::string page(const ClusterCache& cache, const SchedulerCounters& counters,
                 const MetricsInput& facts);

void add_gpu_metrics(prometheus::MetricsWriter& page, const ClusterCache& cache);
void add_scheduler_metrics(prometheus::MetricsWriter& page, const ClusterCache& cache,
                           const SchedulerCounters& counters, const MetricsInput& facts);

}  // namespace gantry::scheduler
