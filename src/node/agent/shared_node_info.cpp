// SPDX-License-Identifier: Apache-2.0
#include "node/agent/shared_node_info.hpp"

#include "base/json/writer.hpp"
#include "cluster/podspec/request.hpp"
#include "gpu/health/health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::agent {
namespace {

constexpr std::string_view kHamiRegister = "hami.io/node-nvidia-register";

const model::Gpu* gpu_of(const model::Inventory& inventory, const model::GpuUuid& uuid) {
  const auto found = std::find_if(inventory.gpus.begin(), inventory.gpus.end(),
                                  [&](const model::Gpu& gpu) { return gpu.uuid == uuid; });
  return found == inventory.gpus.end() ? nullptr : &*found;
}

// Like HAMi: a hundred for each NVLink, plus the PCIe distance.
std::int32_t nearness(const model::Link& link) {
  const auto path = static_cast<int>(link.pcie) - static_cast<int>(model::PciePath::Unknown);
  return 100 * std::max(link.nvlinks, 0) + 10 * std::max(path, 0);
}

std::int32_t nearness(const model::Inventory& inventory, const model::GpuUuid& a,
                      const model::GpuUuid& b) {
  const auto* one = gpu_of(inventory, a);
  const auto* other = gpu_of(inventory, b);
  if (one == nullptr || other == nullptr || one == other) return 0;
  const auto i = static_cast<std::size_t>(one - inventory.gpus.data());
  const auto j = static_cast<std::size_t>(other - inventory.gpus.data());
  if (i >= inventory.links.size() || j >= inventory.links[i].size()) return 0;
  return nearness(inventory.links[i][j]);
}

}  // namespace

podspec::NodeInfo shared_node_info(const std::string& node, const model::Inventory& inventory,
                                   const resources::Offer& offer,
                                   const std::vector<model::DeviceHealth>& health) {
  podspec::NodeInfo facts{.name = node, .unit_mib = offer.shared.unit_mib};
  for (const auto& resource : offer.resources) {
    if (resource.name == podspec::kNvidiaGpu && !resource.tokens &&
        resource.use == model::AllocationMode::Whole)
      facts.whole_gpus = static_cast<std::uint32_t>(resource.devices.size());
  }
  for (const auto& shared : offer.shared.cards) {
    const auto* gpu = gpu_of(inventory, shared.gpu);
    podspec::CardInfo card{.uuid = shared.gpu,
                           .index = static_cast<std::uint32_t>(std::max(shared.index, 0)),
                           .mib = shared.mib,
                           .slots = offer.shared.slots,
                           .healthy = health::health_of(health, {.gpu = shared.gpu}).usable};
    if (gpu != nullptr) {
      card.model = gpu->name;
      card.numa = gpu->numa_node.value_or(-1);
    }
    for (const auto& other : offer.shared.cards)
      card.links.push_back(nearness(inventory, shared.gpu, other.gpu));
    facts.cards.push_back(std::move(card));
  }
  return facts;
}

std::string hami_register(const podspec::NodeInfo& facts) {
  json::Writer out;
  out.array(facts.cards, [&](const podspec::CardInfo& card) {
    out.object([&] {
      out.member("id", card.uuid.text);
      out.member("index", card.index);
      out.member("count", card.slots);
      out.member("devmem", card.mib);
      out.member("devcore", 100);
      out.member("type", card.model);
      out.member("numa", std::max(card.numa, 0));
      out.member("mode", "hami-core");
      out.member("health", card.healthy);
    });
  });
  return std::move(out).text();
}

NodeReport shared_node_report(const podspec::NodeInfo& facts) {
  NodeReport report;
  const std::string shared(podspec::kSharedGpusAnnotation);
  const std::string hami(kHamiRegister);
  const std::string count(podspec::kAliyunGpuCount);
  const std::string memory(podspec::kAliyunGpuMem);
  if (facts.cards.empty()) {
    report.annotations = {{shared, std::nullopt}, {hami, std::nullopt}};
    report.capacity = {{count, std::nullopt}};
    return report;
  }
  report.annotations = {{shared, podspec::to_json(facts)}, {hami, hami_register(facts)}};
  report.labels = {{"gpushare", "true"}};
  report.capacity[count] = fmt::to_string(facts.cards.size());
  if (facts.unit_mib > 1) return report;  // the kubelet counts the tokens
  std::uint64_t units = 0;
  for (const auto& card : facts.cards) units += card.mib / facts.unit_mib;
  report.capacity[memory] = fmt::to_string(units);
  return report;
}

std::vector<model::DeviceAllocation> holders_by_gpu(std::vector<model::DeviceAllocation> holders,
                                                    const std::vector<grants::GrantFile>& granted) {
  for (const auto& written : granted) {
    if (!written.grant.share) continue;
    bool counted = false;  // count it once, even with tokens of two resources
    for (auto& holder : holders) {
      const bool its_own = holder.pod.name == written.grant.pod.name &&
                           holder.pod.name_space == written.grant.pod.name_space &&
                           holder.container == written.container &&
                           written.grant.resources.contains(holder.resource);
      if (!its_own) continue;
      holder.ids.clear();
      if (counted) continue;
      for (const auto& part : written.grant.share->parts)
        holder.ids.push_back(part.uuid.text + "::0");
      counted = true;
    }
  }
  return holders;
}

}  // namespace gantry::agent
