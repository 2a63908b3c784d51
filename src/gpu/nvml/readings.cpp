// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/readings_internal.hpp"
#include "gpu/nvml_child/cgroup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::nvml {
namespace {

constexpr unsigned kMaxReadGpus = 256;
constexpr std::size_t kCgroupLimit = 64 << 10;
constexpr std::int64_t kBusyLatelyMs = 10'000;
constexpr std::int64_t kBusyNowMs = 2'000;

std::optional<int> percent_of(bool answered, unsigned value) {
  return value <= 100 ? plausible_reading(answered, value) : std::nullopt;
}

void read_memory_use(DeviceQuery& query, model::GpuReading& reading) {
  nvmlMemory_v2_t memory{};
  memory.version = nvmlMemory_v2;
  if (GANTRY_QUERY(query, nvmlDeviceGetMemoryInfo_v2, query.device(), &memory)) {
    reading.memory_reserved_bytes = memory.reserved;
  } else {
    nvmlMemory_t old{};
    if (!GANTRY_QUERY(query, nvmlDeviceGetMemoryInfo, query.device(), &old)) return;
    memory.total = old.total;
    memory.used = old.used;
    memory.free = old.free;
  }
  reading.memory_total_bytes = memory.total;
  reading.memory_used_bytes = memory.used;
  reading.memory_free_bytes = memory.free;
}

// 1 licensed, 0 not; only in a vGPU guest.
void read_license(DeviceQuery& query, model::GpuReading& reading) {
  nvmlGpuVirtualizationMode_t mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
  if (!GANTRY_QUERY(query, nvmlDeviceGetVirtualizationMode, query.device(), &mode) ||
      mode != NVML_GPU_VIRTUALIZATION_MODE_VGPU) {
    return;
  }
  nvmlGridLicensableFeatures_t features{};
  if (!GANTRY_QUERY(query, nvmlDeviceGetGridLicensableFeatures_v4, query.device(), &features) ||
      features.isGridLicenseSupported == 0) {
    return;
  }
  reading.vgpu_license = 0;
  for (unsigned i = 0; i < std::min<unsigned>(features.licensableFeaturesCount,
                                              NVML_GRID_LICENSE_FEATURE_MAX_COUNT);
       ++i) {
    if (features.gridLicensableFeatures[i].featureState != 0) reading.vgpu_license = 1;
  }
}

void read_body(DeviceQuery& query, nvml_child::ReadingDepth depth, model::GpuReading& reading) {
  unsigned value = 0;
  bool answered =
      GANTRY_QUERY(query, nvmlDeviceGetTemperature, query.device(), NVML_TEMPERATURE_GPU, &value);
  reading.temperature_celsius = plausible_reading(answered, value);
  unsigned long long reasons = 0;
  if (GANTRY_QUERY(query, nvmlDeviceGetCurrentClocksEventReasons, query.device(), &reasons) ||
      GANTRY_QUERY(query, nvmlDeviceGetCurrentClocksThrottleReasons, query.device(), &reasons)) {
    reading.clock_reasons = reasons;
  }
  if (depth == nvml_child::ReadingDepth::Vital) return;
  answered = GANTRY_QUERY(query, nvmlDeviceGetPowerUsage, query.device(), &value);
  reading.power_milliwatts = plausible_reading(answered, value);
  answered = GANTRY_QUERY(query, nvmlDeviceGetEnforcedPowerLimit, query.device(), &value);
  reading.power_limit_milliwatts = plausible_reading(answered, value);
  answered = GANTRY_QUERY(query, nvmlDeviceGetClockInfo, query.device(), NVML_CLOCK_SM, &value);
  reading.sm_clock_mhz = plausible_reading(answered, value);
  answered = GANTRY_QUERY(query, nvmlDeviceGetClockInfo, query.device(), NVML_CLOCK_MEM, &value);
  reading.memory_clock_mhz = plausible_reading(answered, value);
  if (!reading.pcie_replays &&
      GANTRY_QUERY(query, nvmlDeviceGetPcieReplayCounter, query.device(), &value)) {
    reading.pcie_replays = value;
  }
  if (unsigned long long energy = 0;
      !reading.energy_millijoules &&
      GANTRY_QUERY(query, nvmlDeviceGetTotalEnergyConsumption, query.device(), &energy)) {
    reading.energy_millijoules = energy;
  }
}

// The mean of the driver's samples of the last ten seconds, at most a hundred values.
std::optional<int> duty_cycle(DeviceQuery& query, std::int64_t now_unix_ms) {
  constexpr std::int64_t kWindowMs = 10'000;
  std::array<nvmlSample_t, 256> samples{};
  auto count = static_cast<unsigned>(samples.size());
  nvmlValueType_t type = NVML_VALUE_TYPE_UNSIGNED_INT;
  const auto from = static_cast<unsigned long long>(now_unix_ms - kWindowMs) * 1000;
  if (!GANTRY_QUERY(query, nvmlDeviceGetSamples, query.device(), NVML_GPU_UTILIZATION_SAMPLES, from,
                    &type, &count, samples.data())) {
    return std::nullopt;
  }
  unsigned long long sum = 0;
  unsigned taken = 0;
  for (unsigned i = 0; i < std::min<std::size_t>(count, samples.size()); ++i) {
    if (samples[i].timeStamp < from || samples[i].sampleValue.uiVal > 100) continue;
    sum += samples[i].sampleValue.uiVal;
    ++taken;
  }
  if (taken == 0) return std::nullopt;
  return static_cast<int>(sum / taken);
}

void check_identity(DeviceQuery& query, const model::GpuUuid& known, model::GpuReading& reading) {
  std::array<char, NVML_DEVICE_UUID_V2_BUFFER_SIZE> uuid{};
  if (GANTRY_QUERY(query, nvmlDeviceGetUUID, query.device(), uuid.data(),
                   static_cast<unsigned>(uuid.size())) &&
      to_string(uuid) != known.text) {
    reading.lost = fmt::format("NVML now names it {}", to_string(uuid));
  }
}

}  // namespace

Devices find_devices(const Nvml& nvml) {
  Devices devices;
  unsigned count = 0;
  const auto counted = nvml.nvmlDeviceGetCount_v2(&count);
  if (counted != NVML_SUCCESS) {
    devices.error = nvml_error(counted, "nvmlDeviceGetCount_v2").text();
    return devices;
  }
  for (unsigned i = 0; i < std::min(count, kMaxReadGpus); ++i) {
    auto& device = devices.list.emplace_back();
    std::array<char, NVML_DEVICE_UUID_V2_BUFFER_SIZE> uuid{};
    auto result = nvml.nvmlDeviceGetHandleByIndex_v2(i, &device.handle);
    if (result == NVML_SUCCESS && device.handle != nullptr) {
      result =
          nvml.nvmlDeviceGetUUID(device.handle, uuid.data(), static_cast<unsigned>(uuid.size()));
    }
    if (result == NVML_SUCCESS) {
      device.uuid.text = to_string(uuid);
    } else {
      device.handle = nullptr;
      device.refused = nvml_error(result, "taking a handle").text();
    }
  }
  return devices;
}

void read_activity(DeviceQuery& query, std::int64_t now_unix_ms, model::GpuReading& reading) {
  nvmlUtilization_t utilization{};
  bool answered = GANTRY_QUERY(query, nvmlDeviceGetUtilizationRates, query.device(), &utilization);
  reading.utilization_percent = percent_of(answered, utilization.gpu);
  reading.memory_utilization_percent = percent_of(answered, utilization.memory);
  unsigned value = 0;
  unsigned period = 0;
  answered = GANTRY_QUERY(query, nvmlDeviceGetEncoderUtilization, query.device(), &value, &period);
  reading.encoder_percent = percent_of(answered, value);
  answered = GANTRY_QUERY(query, nvmlDeviceGetDecoderUtilization, query.device(), &value, &period);
  reading.decoder_percent = percent_of(answered, value);
  reading.duty_cycle_percent = duty_cycle(query, now_unix_ms);
  if (!reading.duty_cycle_percent) reading.duty_cycle_percent = reading.utilization_percent;
}

model::GpuReading read_gpu(const Nvml& nvml, const Device& device, nvml_child::ReadingDepth depth,
                           std::int64_t now_unix_ms) {
  model::GpuReading reading;
  reading.uuid = device.uuid;
  if (device.handle == nullptr) {
    reading.lost = device.refused;
    return reading;
  }
  DeviceQuery query(nvml, device.handle);
  check_identity(query, device.uuid, reading);
  if (depth == nvml_child::ReadingDepth::Processes || depth == nvml_child::ReadingDepth::Memory) {
    read_processes(query, reading);
    if (depth == nvml_child::ReadingDepth::Processes)
      read_process_utilization(query, now_unix_ms - kBusyNowMs, reading);
  } else {
    read_fields(query, depth, reading);
    read_body(query, depth, reading);
  }
  if (depth == nvml_child::ReadingDepth::Full) {
    read_memory_use(query, reading);
    read_activity(query, now_unix_ms, reading);
    read_instances(query, reading);
    read_processes(query, reading);
    read_process_utilization(query, now_unix_ms - kBusyLatelyMs, reading);
    read_license(query, reading);
  }
  probe::HealthFacts facts;
  facts.lost = reading.lost;
  query.add_to(facts);
  reading.lost = facts.lost;
  reading.reset_required = reading.reset_required || facts.reset_required;
  return reading;
}

void add_owners(const sys::Host& host, model::Readings& readings) {
  for (auto& gpu : readings.gpus) {
    for (auto& process : gpu.processes) {
      const auto text = host.read(fmt::format("/proc/{}/cgroup", process.pid), kCgroupLimit);
      if (!text.ok()) continue;  // it has ended, or lies in another pid namespace
      auto owner = nvml_child::parse_cgroup_owner(*text);
      process.pod_uid = std::move(owner.pod_uid);
      process.container_id = std::move(owner.container_id);
    }
  }
}

}  // namespace gantry::nvml
