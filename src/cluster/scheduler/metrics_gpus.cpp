// SPDX-License-Identifier: Apache-2.0
// HAMi's names, labels and units: bytes, percentages of time from 0 to 100, and one ratio from 0 to
// 1. Every line has zone="vGPU", as in HAMi's scheduler.
#include "base/core/bytes.hpp"
#include "cluster/scheduler/metrics_page.hpp"

#include <fmt/format.h>

#include <map>

namespace gantry::scheduler {
namespace {

using prometheus::add_label;
using prometheus::label;
using prometheus::MetricInfo;
using prometheus::MetricsWriter;
using prometheus::MetricType;

constexpr MetricInfo kGpuMemoryLimit{"hami_gpu_memory_limit_bytes", MetricType::Gauge,
                                     "Memory of the GPU that can be allocated"};
constexpr MetricInfo kGpuCoreLimit{"hami_gpu_core_limit_ratio", MetricType::Gauge,
                                   "Compute time of the GPU that can be allocated, in percent"};
constexpr MetricInfo kGpuMemory{"hami_gpu_memory_allocated_bytes", MetricType::Gauge,
                                "Memory of the GPU that is allocated"};
constexpr MetricInfo kGpuShared{"hami_gpu_shared_count", MetricType::Gauge,
                                "Containers that share the GPU"};
constexpr MetricInfo kGpuCores{"hami_gpu_core_allocated_ratio", MetricType::Gauge,
                               "Compute time of the GPU that is allocated, in percent"};
constexpr MetricInfo kGpuOverview{"hami_node_gpu_overview", MetricType::Gauge,
                                  "Memory of the GPU that is allocated, in bytes"};
constexpr MetricInfo kGpuMemoryRatio{"hami_node_gpu_memory_allocated_ratio", MetricType::Gauge,
                                     "Allocated part of the GPU's memory, from 0 to 1"};
constexpr MetricInfo kPodMemory{"hami_vgpu_memory_allocated_bytes", MetricType::Gauge,
                                "Memory that is allocated to a pod"};
constexpr MetricInfo kPodCores{"hami_vgpu_core_allocated_ratio", MetricType::Gauge,
                               "Compute time that is allocated to a pod, in percent"};
constexpr MetricInfo kQuotaUsed{"hami_resource_quota_used", MetricType::Gauge,
                                "Amount that is allocated to a namespace, in MiB or percent"};
constexpr MetricInfo kQuotaLimit{"hami_resource_quota_limit", MetricType::Gauge,
                                 "Quota of a namespace, in MiB or percent"};

// The series of a metric must be adjacent, so the nodes are visited once and their values kept.
struct CardRow {
  std::string labels;
  std::uint64_t mib = 0;
  std::uint64_t used_mib = 0;
  std::uint64_t used_cores = 0;
  std::uint64_t used_slots = 0;
};

struct TenantRow {
  std::string labels;
  std::uint64_t mib = 0;
  std::uint64_t cores = 0;
};

struct QuotaRow {
  std::string labels;
  std::uint64_t used = 0;
  std::uint64_t limit = 0;
};

struct Rows {
  std::vector<CardRow> cards;
  std::vector<TenantRow> tenants;
  std::vector<QuotaRow> quotas;
};

void add_number(std::string& labels, std::string_view name, std::uint64_t value) {
  add_label(labels, name, fmt::format_int(value).c_str());
}

std::string with_zone(std::string labels) {
  add_label(labels, "zone", "vGPU");
  return labels;
}

using UsedQuotas = std::map<std::string, placement::Quota, std::less<>>;  // by namespace

CardRow card_row(const std::string& node, const placement::CardView& card) {
  auto labels = label("node", node);
  add_label(labels, "device_uuid", card.facts.uuid.text);
  add_number(labels, "device_index", card.facts.index);
  add_label(labels, "device_type", card.facts.model);
  return {.labels = std::move(labels),
          .mib = card.facts.mib,
          .used_mib = card.used_mib,
          .used_cores = card.used_cores,
          .used_slots = card.used_slots};
}

// HAMi has a line for each container; here a pod's containers on one card are one tenant.
void add_tenants(Rows& rows, const std::string& node, const placement::CardView& card,
                 UsedQuotas& used) {
  for (const auto& tenant : card.tenants) {
    auto labels = label("namespace", tenant.pod.name_space);
    add_label(labels, "node", node);
    add_label(labels, "pod", tenant.pod.name);
    add_label(labels, "container_index", "0");
    add_label(labels, "device_uuid", card.facts.uuid.text);
    rows.tenants.push_back({.labels = std::move(labels), .mib = tenant.mib, .cores = tenant.cores});
    auto& sum = used[tenant.pod.name_space];
    sum.mib += tenant.mib;
    sum.cores += tenant.cores;
  }
}

void add_quota(Rows& rows, const std::string& name_space, std::string_view name, std::uint64_t used,
               std::uint64_t limit) {
  if (limit == 0) return;
  auto labels = label("namespace", name_space);
  add_label(labels, "quota_name", name);
  rows.quotas.push_back({.labels = std::move(labels), .used = used, .limit = limit});
}

Rows read_rows(const ClusterCache& cache) {
  Rows rows;
  UsedQuotas used;
  // One lock per node: no request waits for the whole page.
  for (const auto& node : cache.nodes()) {
    const auto view = cache.view(node);
    for (const auto& card : view.cards) {
      rows.cards.push_back(card_row(node, card));
      add_tenants(rows, node, card, used);
    }
  }
  for (const auto& quota : cache.quotas()) {
    const auto& sum = used[quota.name_space];
    add_quota(rows, quota.name_space, podspec::kHamiGpuMem, sum.mib, quota.limit.mib);
    add_quota(rows, quota.name_space, podspec::kHamiGpuCores, sum.cores, quota.limit.cores);
  }
  return rows;
}

template <class Row, class Value>
void write(MetricsWriter& page, const MetricInfo& metric, const std::vector<Row>& rows,
           Value value) {
  page.begin(metric);
  for (const auto& row : rows) page.series(with_zone(row.labels), value(row));
}

void write_cards(MetricsWriter& page, const std::vector<CardRow>& cards) {
  write(page, kGpuMemoryLimit, cards, [](const CardRow& card) { return card.mib * kMiB; });
  write(page, kGpuCoreLimit, cards, [](const CardRow&) { return std::uint64_t{100}; });
  page.begin(kGpuMemory);
  for (const auto& card : cards) {
    auto labels = card.labels;
    add_number(labels, "device_cores", card.used_cores);
    page.series(with_zone(std::move(labels)), card.used_mib * kMiB);
  }
  write(page, kGpuShared, cards, [](const CardRow& card) { return card.used_slots; });
  write(page, kGpuCores, cards, [](const CardRow& card) { return card.used_cores; });
  page.begin(kGpuOverview);
  for (const auto& card : cards) {
    auto labels = card.labels;
    add_number(labels, "device_cores", card.used_cores);
    add_number(labels, "device_memory_limit", card.mib);
    page.series(with_zone(std::move(labels)), card.used_mib * kMiB);
  }
  page.begin(kGpuMemoryRatio);
  for (const auto& card : cards) {
    if (card.mib == 0) continue;
    page.series(with_zone(card.labels),
                static_cast<double>(card.used_mib) / static_cast<double>(card.mib));
  }
}

void write_quotas(MetricsWriter& page, const std::vector<QuotaRow>& quotas) {
  page.begin(kQuotaUsed);
  for (const auto& quota : quotas) {
    auto labels = quota.labels;
    add_number(labels, "limit", quota.limit);
    page.series(with_zone(std::move(labels)), quota.used);
  }
  write(page, kQuotaLimit, quotas, [](const QuotaRow& quota) { return quota.limit; });
}

}  // namespace

void add_gpu_metrics(MetricsWriter& page, const ClusterCache& cache) {
  const auto rows = read_rows(cache);
  write_cards(page, rows.cards);
  write(page, kPodMemory, rows.tenants, [](const TenantRow& pod) { return pod.mib * kMiB; });
  write(page, kPodCores, rows.tenants, [](const TenantRow& pod) { return pod.cores; });
  write_quotas(page, rows.quotas);
}

}  // namespace gantry::scheduler
