// SPDX-License-Identifier: Apache-2.0
#include "node/resources/preferred_allocation.hpp"

#include <algorithm>
#include <tuple>

namespace gantry::resources {
namespace {

// Larger than 120 pairs (16 GPUs) times the maximum of the lower terms; NUMA nodes count one for
// each pair.
constexpr LinkScore kPcie = 1'000;
constexpr LinkScore kNvlink = 10'000'000;

int find_gpu_index(const model::Inventory& machine, const model::GpuUuid& uuid) {
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    if (machine.gpus[i].uuid == uuid) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

LinkScore pair_score(const model::Link& link, const model::Gpu& a, const model::Gpu& b) {
  const auto path = static_cast<LinkScore>(link.pcie);
  const auto unknown = static_cast<LinkScore>(model::PciePath::Unknown);
  const bool same_node = a.numa_node && b.numa_node && *a.numa_node == *b.numa_node;
  return std::max(link.nvlinks, 0) * kNvlink + std::max<LinkScore>(path - unknown, 0) * kPcie +
         (same_node ? 1 : 0);
}

PreferredAllocation::PreferredAllocation(const model::Inventory& machine,
                                         const model::AdvertisedResource& resource,
                                         options::SharedPolicy policy)
    : policy_(policy) {
  const auto count = machine.gpus.size();
  scores_.assign(count, std::vector<LinkScore>(count, 0));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      const bool known = i < machine.links.size() && j < machine.links[i].size();
      const auto link = known ? machine.links[i][j] : model::Link{};
      scores_[i][j] = pair_score(link, machine.gpus[i], machine.gpus[j]);
    }
  }
  gpu_totals_.assign(count, 0);
  std::map<std::string, int> units;
  for (const auto& device : resource.devices) {
    const int gpu = find_gpu_index(machine, device.gpu);
    if (gpu < 0) continue;
    const auto& unit = device.mig.text.empty() ? device.gpu.text : device.mig.text;
    const auto at = units.try_emplace(unit, static_cast<int>(units.size())).first->second;
    if (static_cast<std::size_t>(at) == unit_totals_.size()) unit_totals_.push_back(0);
    ++unit_totals_[static_cast<std::size_t>(at)];
    ++gpu_totals_[static_cast<std::size_t>(gpu)];
    shared_ = shared_ || device.replica >= 0 || !device.mig.text.empty();
    devices_[device.id] = {.gpu = gpu, .unit = at, .order = static_cast<int>(devices_.size())};
  }
}

std::vector<PreferredAllocation::KnownDevice> PreferredAllocation::known(
    std::span<const std::string> ids) const {
  std::vector<KnownDevice> result;
  for (const auto& id : ids) {
    const auto found = devices_.find(id);
    if (found != devices_.end()) result.push_back({&found->first, &found->second});
  }
  std::sort(result.begin(), result.end(), [](const KnownDevice& a, const KnownDevice& b) {
    return a.device->order < b.device->order;
  });
  const auto same = [](const KnownDevice& a, const KnownDevice& b) { return a.device == b.device; };
  result.erase(std::unique(result.begin(), result.end(), same), result.end());
  return result;
}

std::vector<std::string> PreferredAllocation::prefer(std::span<const std::string> available,
                                                     std::span<const std::string> must_include,
                                                     int size) const {
  const auto required = known(must_include);
  const auto free = known(available);
  return shared_ ? spread(free, required, size) : linked(free, required, size);
}

std::vector<std::string> PreferredAllocation::linked(const std::vector<KnownDevice>& available,
                                                     const std::vector<KnownDevice>& required,
                                                     int size) const {
  std::vector<int> free;
  std::vector<int> fixed;
  std::map<int, std::string> ids;
  for (const auto& entry : available) {
    free.push_back(entry.device->gpu);
    ids[entry.device->gpu] = *entry.id;
  }
  for (const auto& entry : required) {
    fixed.push_back(entry.device->gpu);
    ids[entry.device->gpu] = *entry.id;
  }
  std::vector<std::string> result;
  for (const int gpu : best_set(scores_, free, fixed, size).chosen) result.push_back(ids[gpu]);
  return result;
}

// Each step takes a device of the GPU with the most devices left (spread) or the fewest (packed). A
// second replica of a GPU gives a container nothing, so spreading first takes another GPU, even a
// busy one.
std::vector<std::string> PreferredAllocation::spread(const std::vector<KnownDevice>& available,
                                                     const std::vector<KnownDevice>& required,
                                                     int size) const {
  auto gpu_used = gpu_totals_;
  auto unit_used = unit_totals_;
  for (const auto& entry : available) {
    --gpu_used[static_cast<std::size_t>(entry.device->gpu)];
    --unit_used[static_cast<std::size_t>(entry.device->unit)];
  }
  std::vector<int> here(unit_used.size(), 0);
  std::vector<std::string> result;
  auto left = available;
  const auto take = [&](const KnownDevice& entry) {
    result.push_back(*entry.id);
    ++here[static_cast<std::size_t>(entry.device->unit)];
    ++gpu_used[static_cast<std::size_t>(entry.device->gpu)];
    ++unit_used[static_cast<std::size_t>(entry.device->unit)];
    std::erase_if(left, [&](const KnownDevice& other) { return other.device == entry.device; });
  };
  for (const auto& entry : required) take(entry);
  const auto rank = [&](const KnownDevice& entry) {
    const auto unit = static_cast<std::size_t>(entry.device->unit);
    const auto gpu = static_cast<std::size_t>(entry.device->gpu);
    if (policy_ == options::SharedPolicy::Packed)
      return std::tuple(0, -gpu_used[gpu], -unit_used[unit], entry.device->order);
    return std::tuple(here[unit], gpu_used[gpu], unit_used[unit], entry.device->order);
  };
  while (static_cast<int>(result.size()) < size && !left.empty()) {
    const auto best = std::min_element(
        left.begin(), left.end(),
        [&](const KnownDevice& a, const KnownDevice& b) { return rank(a) < rank(b); });
    take(KnownDevice(*best));
  }
  return result;
}

}  // namespace gantry::resources
