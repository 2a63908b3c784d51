// SPDX-License-Identifier: Apache-2.0
// HAMi's names, labels and units: bytes, percentages of time from 0 to 100, and one ratio from 0 to
// 1. Every line has zone="vGPU", as in HAMi's scheduler.
#include "cluster/scheduler/metrics_page.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <map>

namespace gantry::scheduler {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;

// The lines of a family must be adjacent, so each family collects its lines while the nodes are
// visited once.
struct Family {
  std::string_view name;
  std::string_view help;
  std::string lines;

  template <class Value>
  void add(std::string_view labels, Value value) {
    fmt::format_to(std::back_inserter(lines), "{}{{{},zone=\"vGPU\"}} {}\n", name, labels, value);
  }
  void append_to(std::string& page) const {
    if (lines.empty()) return;
    fmt::format_to(std::back_inserter(page), "# HELP {0} {1}\n# TYPE {0} gauge\n{2}", name, help,
                   lines);
  }
};

struct Families {
  Family memory_limit{"hami_gpu_memory_limit_bytes", "Memory of the GPU that can be allocated", {}};
  Family core_limit{
      "hami_gpu_core_limit_ratio", "Compute time of the GPU that can be allocated, in percent", {}};
  Family memory{"hami_gpu_memory_allocated_bytes", "Memory of the GPU that is allocated", {}};
  Family shared{"hami_gpu_shared_count", "Containers that share the GPU", {}};
  Family cores{
      "hami_gpu_core_allocated_ratio", "Compute time of the GPU that is allocated, in percent", {}};
  Family overview{"hami_node_gpu_overview", "Memory of the GPU that is allocated, in bytes", {}};
  Family ratio{"hami_node_gpu_memory_allocated_ratio",
               "Allocated part of the GPU's memory, from 0 to 1",
               {}};
  Family pod_memory{"hami_vgpu_memory_allocated_bytes", "Memory that is allocated to a pod", {}};
  Family pod_cores{
      "hami_vgpu_core_allocated_ratio", "Compute time that is allocated to a pod, in percent", {}};
  Family quota_used{
      "hami_resource_quota_used", "Amount that is allocated to a namespace, in MiB or percent", {}};
  Family quota_limit{"hami_resource_quota_limit", "Quota of a namespace, in MiB or percent", {}};

  void append_to(std::string& page) const {
    for (const auto* family : {&memory_limit, &core_limit, &memory, &shared, &cores, &overview,
                               &ratio, &pod_memory, &pod_cores, &quota_used, &quota_limit})
      family->append_to(page);
  }
};

using Used = std::map<std::string, placement::Quota, std::less<>>;  // by namespace

void add_card(Families& families, const std::string& node, const placement::CardView& card) {
  const auto& facts = card.facts;
  const auto labels = fmt::format(R"(node="{}",device_uuid="{}",device_index="{}")", node,
                                  label(facts.uuid.text), facts.index);
  const auto typed = fmt::format(R"({},device_type="{}")", labels, label(facts.model));
  families.memory_limit.add(typed, facts.mib * kMiB);
  families.core_limit.add(typed, 100);
  families.memory.add(fmt::format(R"({},device_cores="{}")", typed, card.used_cores),
                      card.used_mib * kMiB);
  families.shared.add(typed, card.used_slots);
  families.cores.add(typed, card.used_cores);
  families.overview.add(fmt::format(R"({},device_cores="{}",device_memory_limit="{}")", typed,
                                    card.used_cores, facts.mib),
                        card.used_mib * kMiB);
  if (facts.mib > 0) {
    families.ratio.add(typed, static_cast<double>(card.used_mib) / static_cast<double>(facts.mib));
  }
}

// HAMi has a line for each container; here a pod's containers on one card are one tenant.
void add_tenants(Families& families, const std::string& node, const placement::CardView& card,
                 Used& used) {
  for (const auto& tenant : card.tenants) {
    const auto labels = fmt::format(
        R"(namespace="{}",node="{}",pod="{}",container_index="0",device_uuid="{}")",
        label(tenant.pod.name_space), node, label(tenant.pod.name), label(card.facts.uuid.text));
    families.pod_memory.add(labels, tenant.mib * kMiB);
    families.pod_cores.add(labels, tenant.cores);
    auto& sum = used[tenant.pod.name_space];
    sum.mib += tenant.mib;
    sum.cores += tenant.cores;
  }
}

void add_quota(Families& families, const std::string& name_space, std::string_view name,
               std::uint64_t used, std::uint64_t limit) {
  if (limit == 0) return;
  const auto labels = fmt::format(R"(namespace="{}",quota_name="{}")", label(name_space), name);
  families.quota_used.add(fmt::format(R"({},limit="{}")", labels, limit), used);
  families.quota_limit.add(labels, limit);
}

}  // namespace

std::string label(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void append_gpu_metrics(std::string& page, const ClusterCache& cache) {
  Families families;
  Used used;
  // One lock per node: no request waits for the whole page.
  for (const auto& name : cache.nodes()) {
    const auto view = cache.view(name);
    const auto node = label(name);
    for (const auto& card : view.cards) {
      add_card(families, node, card);
      add_tenants(families, node, card, used);
    }
  }
  for (const auto& quota : cache.quotas()) {
    const auto& sum = used[quota.name_space];
    add_quota(families, quota.name_space, podspec::kHamiGpuMem, sum.mib, quota.limit.mib);
    add_quota(families, quota.name_space, podspec::kHamiGpuCores, sum.cores, quota.limit.cores);
  }
  families.append_to(page);
}

}  // namespace gantry::scheduler
