// SPDX-License-Identifier: Apache-2.0
// Writes metrics in the Prometheus text format.
#pragma once

#include "node/metrics/pages.hpp"
#include "node/metrics/snapshot.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::metrics {

enum class MetricType : std::uint8_t { Gauge, Counter, Histogram };

struct MetricInfo {
  std::string_view name;
  MetricType type = MetricType::Gauge;
  std::string_view help;
};

// Appends name="value", escaped; invalid UTF-8 becomes question marks. Several calls make a list.
void add_label(std::string& labels, std::string_view name, std::string_view value);

class MetricsWriter {
 public:
  // Starts a metric; its head is written with its first series.
  void begin(const MetricInfo& metric);
  void series(std::string_view labels, double value);
  void series(std::string_view labels, std::uint64_t value);
  void histogram(std::string_view labels, const Histogram& histogram);
  std::string take(const MetricInfo& left_out);

 private:
  bool head();
  void line(std::string_view suffix, std::string_view labels, std::string_view more);
  MetricInfo metric_;
  bool written_ = false;
  std::uint64_t left_out_ = 0;
  std::string text_;
};

void add_gke(const Snapshot& snapshot, const std::vector<Attribution>& holders,
             MetricsWriter& page);
void add_dcgm(const Snapshot& snapshot, const std::vector<Attribution>& holders,
              MetricsWriter& page);
void add_gantry(const Snapshot& snapshot, MetricsWriter& page);

std::vector<std::string_view> gke_names();
std::vector<std::string_view> dcgm_names();
std::vector<std::string_view> gantry_names();

// What the processes of one pod use on a card that other pods use too. nullopt: unknown.
struct PodUsage {
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> percent;
};
PodUsage pod_usage(const model::GpuReading& reading, const Attribution& holder);

const model::GpuReading* find_reading(const Snapshot& snapshot, const model::GpuUuid& gpu);
const model::InstanceReading* find_instance(const model::GpuReading& reading,
                                            const model::GpuUuid& mig);

}  // namespace gantry::metrics
