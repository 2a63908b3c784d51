// SPDX-License-Identifier: Apache-2.0
// Snapshots of machines with holders, for tests and measurements.
#pragma once

#include "node/metrics/snapshot.hpp"

#include <fmt/format.h>

namespace gantry::metrics {

inline model::DeviceAllocation hold(std::string name_space, std::string pod, std::string container,
                                    std::vector<std::string> ids,
                                    std::string resource = "nvidia.com/gpu", std::string uid = "") {
  return {
      .pod = {.uid = std::move(uid), .name_space = std::move(name_space), .name = std::move(pod)},
      .container = std::move(container),
      .resource = std::move(resource),
      .ids = std::move(ids)};
}

inline model::GpuReading reading_for_test(int index) {
  model::GpuReading reading;
  reading.uuid.text = fmt::format("GPU-{}", index);
  reading.recovery_action = model::RecoveryAction::None;
  reading.memory_total_bytes = std::uint64_t{143771} << 20U;
  reading.memory_used_bytes = std::uint64_t{1024} << 20U;
  reading.memory_free_bytes = std::uint64_t{142000} << 20U;
  reading.memory_reserved_bytes = std::uint64_t{747} << 20U;
  reading.temperature_celsius = 40 + index;
  reading.memory_temperature_celsius = 45;
  reading.power_milliwatts = 76'500;
  reading.power_limit_milliwatts = 700'000;
  reading.energy_millijoules = 123'456'789'012;
  reading.utilization_percent = reading.duty_cycle_percent = 17;
  reading.memory_utilization_percent = reading.encoder_percent = reading.decoder_percent = 3;
  reading.sm_clock_mhz = 1980;
  reading.memory_clock_mhz = 3201;
  reading.pcie_replays = reading.nvlink_bandwidth_total = reading.ecc_corrected_volatile = 0;
  reading.ecc_uncorrected_volatile = reading.remapped_corrected = reading.remap_failure = 0;
  reading.power_violation_ns = reading.thermal_violation_ns = 12'345;
  return reading;
}

inline Snapshot machine_for_test(int gpus) {
  Snapshot snapshot;
  snapshot.node = "node-1";
  snapshot.version = "0.1.0";
  snapshot.driver_answers = true;
  snapshot.counters.started_unix_s = 1'760'000'000;
  snapshot.inventory.driver.version = "580.159.04";
  snapshot.readings.at_unix_ms = 1'760'000'000'500;
  auto& resource = snapshot.offered.emplace_back();
  resource.name = "nvidia.com/gpu";
  for (int i = 0; i < gpus; ++i) {
    auto& gpu = snapshot.inventory.gpus.emplace_back();
    gpu.index = i;
    gpu.uuid.text = fmt::format("GPU-{}", i);
    gpu.name = "NVIDIA H200";
    gpu.minor = static_cast<std::uint32_t>(i);
    gpu.pci.bus = static_cast<std::uint8_t>(0x1a + i);
    snapshot.readings.gpus.push_back(reading_for_test(i));
    snapshot.health.push_back({.gpu = gpu.uuid});
    resource.devices.push_back({.id = gpu.uuid.text, .gpu = gpu.uuid});
  }
  return snapshot;
}

inline void divide(Snapshot& snapshot, std::size_t gpu, int instances) {
  auto& card = snapshot.inventory.gpus[gpu];
  card.mig.current = model::MigMode::Enabled;
  for (int i = 0; i < instances; ++i) {
    auto& mig = card.mig.instances.emplace_back();
    mig.uuid.text = fmt::format("MIG-{}-{}", gpu, i);
    mig.gpu_instance = 7 + i;
    mig.profile = "1g.18gb";
    auto& reading = snapshot.readings.gpus[gpu].instances.emplace_back();
    reading.uuid = mig.uuid;
    reading.gpu_instance = mig.gpu_instance;
    reading.memory_used_bytes = static_cast<std::uint64_t>(100 + i) << 20U;
  }
}

inline void share(Snapshot& snapshot, int replicas) {
  auto& resource = snapshot.offered.emplace_back();
  resource.name = "nvidia.com/gpu.shared";
  resource.use = model::AllocationMode::Replicas;
  for (const auto& gpu : snapshot.inventory.gpus) {
    for (int i = 0; i < replicas; ++i) {
      resource.devices.push_back(
          {.id = fmt::format("{}::{}", gpu.uuid.text, i), .gpu = gpu.uuid, .replica = i});
    }
  }
}

// Eight GPUs, fifty pods on replicas of them, a process each, everything counted.
inline Snapshot busy_machine_for_test() {
  auto snapshot = machine_for_test(8);
  share(snapshot, 8);
  for (int i = 0; i < 50; ++i) {
    const auto uid = fmt::format("6f9c1d1e-0a1b-4c2d-8e3f-{:012}", i);
    snapshot.holders.push_back(hold("team-a", fmt::format("trainer-{}-abcde", i), "main",
                                    {fmt::format("GPU-{}::{}", i % 8, i / 8)},
                                    "nvidia.com/gpu.shared", uid));
    snapshot.readings.gpus[static_cast<std::size_t>(i % 8)].processes.push_back(
        {.pid = static_cast<std::uint32_t>(1000 + i),
         .memory_bytes = std::uint64_t{500} << 20U,
         .utilization_percent = 2,
         .pod_uid = uid});
  }
  for (auto& gpu : snapshot.readings.gpus) {
    gpu.profile = {.graphics_active = 0.5, .sm_active = 0.25, .tensor_active = 0.125};
  }
  auto& counters = snapshot.counters;
  counters.allocations[{"nvidia.com/gpu.shared", Outcome::Ok}] = 50;
  counters.registrations[{"nvidia.com/gpu.shared", Outcome::Error}] = 1;
  counters.allocate_seconds["nvidia.com/gpu.shared"].add(0.0002);
  counters.scrape_seconds["dcgm"].add(0.0009);
  counters.health_changes[{"GPU-0"}] = 2;
  counters.xids[{{"GPU-0"}, 31}] = 1;
  counters.kubelet_connections["nvidia.com/gpu.shared"] = 1;
  return snapshot;
}

}  // namespace gantry::metrics
