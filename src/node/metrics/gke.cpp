// SPDX-License-Identifier: Apache-2.0
// The gauges of GKE's device plugin, with its names.
#include "node/metrics/pages_internal.hpp"

#include <array>

namespace gantry::metrics {
namespace {

constexpr MetricInfo kDuty{"duty_cycle", MetricType::Gauge,
                           "Percent of time when the GPU was actively processing"};
constexpr MetricInfo kTotal{"memory_total", MetricType::Gauge,
                            "Total memory available on the GPU in bytes"};
constexpr MetricInfo kUsed{"memory_used", MetricType::Gauge, "Allocated GPU memory in bytes"};
constexpr MetricInfo kRequest{"request", MetricType::Gauge,
                              "Number of accelerator devices requested by the container"};
constexpr MetricInfo kDutyNode{"duty_cycle_gpu_node", MetricType::Gauge,
                               "Percent of time when the GPU was actively processing"};
constexpr MetricInfo kTotalNode{"memory_total_gpu_node", MetricType::Gauge,
                                "Total memory available on the GPU in bytes"};
constexpr MetricInfo kUsedNode{"memory_used_gpu_node", MetricType::Gauge,
                               "Allocated GPU memory in bytes"};

struct GkeSeries {
  std::string labels;
  std::optional<int> duty;
  std::optional<std::uint64_t> total, used;
};

void add_gke_pod(std::string& labels, const model::DeviceAllocation& holder) {
  add_label(labels, "namespace", holder.pod.name_space);
  add_label(labels, "pod", holder.pod.name);
  add_label(labels, "container", holder.container);
}

void add_card(std::string& labels, const std::string& id, const std::string& model) {
  add_label(labels, "make", "nvidia");
  add_label(labels, "accelerator_id", id);
  add_label(labels, "model", model);
}

const std::string& gpu_model(const Snapshot& snapshot, const model::GpuUuid& uuid) {
  static const std::string none;
  for (const auto& gpu : snapshot.inventory.gpus) {
    if (gpu.uuid == uuid) return gpu.name;
  }
  return none;
}

GkeSeries make_row(const Snapshot& snapshot, const Attribution& holder) {
  GkeSeries row;
  add_gke_pod(row.labels, holder.holder);
  add_card(row.labels, holder.mig.text.empty() ? holder.gpu.text : holder.mig.text,
           gpu_model(snapshot, holder.gpu));
  const auto* reading = find_reading(snapshot, holder.gpu);
  if (reading == nullptr) return row;
  if (const auto* instance = find_instance(*reading, holder.mig)) {
    row.total = instance->memory_total_bytes;
    row.used = instance->memory_used_bytes;
  } else if (holder.mig.text.empty()) {
    row.total = reading->memory_total_bytes;
    row.used = reading->memory_used_bytes;
    row.duty = reading->duty_cycle_percent;
  }
  if (!holder.shared) return row;
  const auto use = pod_usage(*reading, holder);
  row.used = use.memory_bytes;
  row.duty = use.percent;
  return row;
}

GkeSeries make_row(const Snapshot& snapshot, const model::Gpu& gpu) {
  GkeSeries row;
  add_card(row.labels, gpu.uuid.text, gpu.name);
  row.total = gpu.memory_bytes;
  const auto* reading = find_reading(snapshot, gpu.uuid);
  if (reading == nullptr) return row;
  row.duty = reading->duty_cycle_percent;
  row.used = reading->memory_used_bytes;
  if (reading->memory_total_bytes) row.total = reading->memory_total_bytes;
  return row;
}

void write(MetricsWriter& page, const std::vector<GkeSeries>& rows, const MetricInfo& duty,
           const MetricInfo& total, const MetricInfo& used) {
  page.begin(duty);
  for (const auto& row : rows) {
    if (row.duty) page.series(row.labels, static_cast<double>(*row.duty));
  }
  page.begin(total);
  for (const auto& row : rows) {
    if (row.total) page.series(row.labels, *row.total);
  }
  page.begin(used);
  for (const auto& row : rows) {
    if (row.used) page.series(row.labels, *row.used);
  }
}

}  // namespace

void add_gke(const Snapshot& snapshot, const std::vector<Attribution>& holders,
             MetricsWriter& page) {
  std::vector<GkeSeries> rows;
  rows.reserve(holders.size());
  for (const auto& holder : holders) rows.push_back(make_row(snapshot, holder));
  write(page, rows, kDuty, kTotal, kUsed);
  page.begin(kRequest);
  for (const auto& holder : snapshot.holders) {
    std::string labels;
    add_gke_pod(labels, holder);
    add_label(labels, "resource_name", holder.resource);
    page.series(labels, static_cast<std::uint64_t>(holder.ids.size()));
  }
  rows.clear();
  for (const auto& gpu : snapshot.inventory.gpus) rows.push_back(make_row(snapshot, gpu));
  write(page, rows, kDutyNode, kTotalNode, kUsedNode);
}

std::vector<std::string_view> gke_names() {
  return {kDuty.name,     kTotal.name,     kUsed.name,    kRequest.name,
          kDutyNode.name, kTotalNode.name, kUsedNode.name};
}

}  // namespace gantry::metrics
