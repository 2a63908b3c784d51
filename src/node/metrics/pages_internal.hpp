// SPDX-License-Identifier: Apache-2.0
// The parts of the metrics pages.
#pragma once

#include "net/prometheus/metrics_writer.hpp"
#include "node/metrics/pages.hpp"
#include "node/metrics/snapshot.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::metrics {

using prometheus::add_label;
using prometheus::label;
using prometheus::MetricInfo;
using prometheus::MetricsWriter;
using prometheus::MetricType;

constexpr auto kGauge = MetricType::Gauge;
constexpr auto kCounter = MetricType::Counter;
constexpr auto kHistogram = MetricType::Histogram;

void add_gke(const Snapshot& snapshot, const std::vector<Attribution>& holders,
             MetricsWriter& page);
void add_dcgm(const Snapshot& snapshot, const std::vector<Attribution>& holders,
              MetricsWriter& page);
void add_gantry(const Snapshot& snapshot, MetricsWriter& page);

std::vector<std::string_view> gke_names();
std::vector<std::string_view> dcgm_names();
std::vector<std::string_view> gantry_names();

// The usage of the processes of one pod on a card that other pods use too. nullopt: unknown.
struct PodUsage {
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> percent;
};
PodUsage pod_usage(const model::GpuReading& reading, const Attribution& holder);

const model::GpuReading* find_reading(const Snapshot& snapshot, const model::GpuUuid& gpu);
const model::InstanceReading* find_instance(const model::GpuReading& reading,
                                            const model::GpuUuid& mig);

}  // namespace gantry::metrics
