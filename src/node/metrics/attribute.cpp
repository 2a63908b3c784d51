// SPDX-License-Identifier: Apache-2.0
// Finds the container of each device.
#include "base/core/text.hpp"
#include "node/metrics/pages_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace gantry::metrics {
namespace {

struct Device {
  model::GpuUuid gpu, mig;
  bool shared = false;
};

// Recognizes ids that a kubelet may still hold, no matter which plugin offered them.
class Finder {
 public:
  explicit Finder(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const auto& resource : snapshot.offered) {
      if (resource.tokens) continue;  // tokens do not belong to a GPU
      for (const auto& device : resource.devices) {
        const bool shared = device.replica >= 0 || resource.use == model::AllocationMode::Shares ||
                            resource.use == model::AllocationMode::Replicas;
        offered_.try_emplace(device.id, Device{device.gpu, device.mig, shared});
      }
    }
    for (const auto& gpu : snapshot.inventory.gpus) {
      for (const auto& mig : gpu.mig.instances) migs_.try_emplace(mig.uuid.text, gpu.uuid);
    }
  }

  std::optional<Device> find(const std::string& id) const {
    const auto known = offered_.find(id);
    if (known != offered_.end()) return known->second;
    const auto colons = id.find("::");
    if (id.starts_with("nvidia")) return of_node(id);
    return of_uuid(id.substr(0, colons), colons != std::string::npos);
  }

 private:
  std::optional<Device> of_uuid(const std::string& uuid, bool shared) const {
    const auto mig = migs_.find(uuid);
    if (mig != migs_.end()) return Device{mig->second, {uuid}, shared};
    for (const auto& gpu : snapshot_.inventory.gpus) {
      if (gpu.uuid.text == uuid) return Device{gpu.uuid, {}, shared};
    }
    return std::nullopt;
  }

  // "nvidia0", "nvidia0/gi7", "nvidia0/gi7/vgpu1", "nvidia0/vgpu1".
  std::optional<Device> of_node(std::string_view id) const {
    const auto parts = split(id, '/');
    const auto minor = parse_u64(parts[0].substr(6));
    for (const auto& gpu : snapshot_.inventory.gpus) {
      if (!minor || gpu.minor != *minor) continue;
      Device device{gpu.uuid, {}, parts.back().starts_with("vgpu")};
      if (parts.size() < 2 || !parts[1].starts_with("gi")) return device;
      const auto instance = parse_u64(parts[1].substr(2));
      for (const auto& mig : gpu.mig.instances) {
        if (instance && static_cast<std::uint64_t>(mig.gpu_instance) == *instance) {
          device.mig = mig.uuid;
          return device;
        }
      }
      return std::nullopt;
    }
    return std::nullopt;
  }

  const Snapshot& snapshot_;
  std::unordered_map<std::string, Device> offered_;
  std::unordered_map<std::string, model::GpuUuid> migs_;
};

}  // namespace

std::vector<Attribution> attribute_devices(const Snapshot& snapshot) {
  const Finder finder(snapshot);
  std::vector<Attribution> list;
  std::unordered_set<std::string> seen;
  for (const auto& holder : snapshot.holders) {
    for (const auto& id : holder.ids) {
      auto device = finder.find(id);
      if (!device) continue;
      Attribution one{std::move(device->gpu), std::move(device->mig), device->shared, holder};
      one.holder.ids = {id};
      // Two replicas of one card in one container count as one use.
      const auto use = fmt::format("{}\n{}\n{}\n{}\n{}", one.gpu.text, one.mig.text,
                                   holder.pod.name_space, holder.pod.name, holder.container);
      if (seen.insert(use).second) list.push_back(std::move(one));
    }
  }
  std::unordered_map<std::string, int> order;
  for (const auto& gpu : snapshot.inventory.gpus) order.try_emplace(gpu.uuid.text, gpu.index);
  std::stable_sort(list.begin(), list.end(), [&](const Attribution& a, const Attribution& b) {
    if (a.gpu != b.gpu) return order[a.gpu.text] < order[b.gpu.text];
    return a.mig < b.mig;
  });
  return list;
}

PodUsage pod_usage(const model::GpuReading& reading, const Attribution& holder) {
  PodUsage use;
  if (holder.holder.pod.uid.empty()) return use;
  const auto* instance = find_instance(reading, holder.mig);
  use.memory_bytes = 0;
  use.percent = 0;
  for (const auto& process : reading.processes) {
    if (process.pod_uid != holder.holder.pod.uid) continue;
    if (instance != nullptr && process.gpu_instance != instance->gpu_instance) continue;
    *use.memory_bytes += process.memory_bytes.value_or(0);
    if (use.percent && process.utilization_percent) {
      use.percent = std::min(100, *use.percent + *process.utilization_percent);
    } else {
      use.percent.reset();  // a process runs, but its use is unknown
    }
  }
  return use;
}

const model::GpuReading* find_reading(const Snapshot& snapshot, const model::GpuUuid& gpu) {
  for (const auto& reading : snapshot.readings.gpus) {
    if (reading.uuid == gpu) return &reading;
  }
  return nullptr;
}

const model::InstanceReading* find_instance(const model::GpuReading& reading,
                                            const model::GpuUuid& mig) {
  for (const auto& instance : reading.instances) {
    if (!mig.text.empty() && instance.uuid == mig) return &instance;
  }
  return nullptr;
}

}  // namespace gantry::metrics
