// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/profile_internal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

namespace gantry::nvml {
namespace {

using namespace std::chrono_literals;

constexpr auto kShortest = 100ms;  // the driver does not update its counters more often
constexpr std::size_t kMaxSamples = 4096;

struct GpmMetric {
  unsigned id;
  std::optional<double> model::ProfileReading::*member;
  double scale;
  double most;
};
constexpr double kPercent = 0.01;
constexpr double kMib = 1024.0 * 1024.0;
constexpr double kFast = 1e13;  // bytes per second, more than any bus has

constexpr std::array kGpmMetrics{
    GpmMetric{NVML_GPM_METRIC_GRAPHICS_UTIL, &model::ProfileReading::graphics_active, kPercent, 1},
    GpmMetric{NVML_GPM_METRIC_SM_UTIL, &model::ProfileReading::sm_active, kPercent, 1},
    GpmMetric{NVML_GPM_METRIC_SM_OCCUPANCY, &model::ProfileReading::sm_occupancy, kPercent, 1},
    GpmMetric{NVML_GPM_METRIC_ANY_TENSOR_UTIL, &model::ProfileReading::tensor_active, kPercent, 1},
    GpmMetric{NVML_GPM_METRIC_DRAM_BW_UTIL, &model::ProfileReading::dram_active, kPercent, 1},
    GpmMetric{NVML_GPM_METRIC_FP64_UTIL, &model::ProfileReading::fp64_active, kPercent, 1},
    GpmMetric{NVML_GPM_METRIC_FP32_UTIL, &model::ProfileReading::fp32_active, kPercent, 1},
    GpmMetric{NVML_GPM_METRIC_FP16_UTIL, &model::ProfileReading::fp16_active, kPercent, 1},
    GpmMetric{NVML_GPM_METRIC_PCIE_TX_PER_SEC, &model::ProfileReading::pcie_sent_bytes_per_second,
              kMib, kFast},
    GpmMetric{NVML_GPM_METRIC_PCIE_RX_PER_SEC,
              &model::ProfileReading::pcie_received_bytes_per_second, kMib, kFast},
};

template <class Function>
Function symbol(const Nvml& nvml, const char* name) {
  return reinterpret_cast<Function>(nvml.library.symbol(name));
}

}  // namespace

GpmFunctions GpmFunctions::of(const Nvml& nvml) {
  return {.support = nvml.nvmlGpmQueryDeviceSupport,
          .alloc = symbol<gantryGpmSampleAlloc_t>(nvml, "nvmlGpmSampleAlloc"),
          .free = symbol<gantryGpmSampleFree_t>(nvml, "nvmlGpmSampleFree"),
          .get = symbol<gantryGpmSampleGet_t>(nvml, "nvmlGpmSampleGet"),
          .get_mig = symbol<gantryGpmMigSampleGet_t>(nvml, "nvmlGpmMigSampleGet"),
          .metrics = symbol<gantryGpmMetricsGet_t>(nvml, "nvmlGpmMetricsGet")};
}

Profiler::~Profiler() {
  forget();
}

void Profiler::forget() {
  for (auto& [key, kept] : samples_) {
    if (kept.older != nullptr) gpm_.free(kept.older);
    if (kept.newer != nullptr) gpm_.free(kept.newer);
  }
  samples_.clear();
  supported_.clear();
}

bool Profiler::is_supported(nvmlDevice_t device, const std::string& uuid) {
  if (!gpm_.complete()) return false;
  const auto known = supported_.find(uuid);
  if (known != supported_.end()) return known->second;
  nvmlGpmSupport_t support{.version = NVML_GPM_SUPPORT_VERSION, .isSupportedDevice = 0};
  const bool yes = gpm_.support(device, &support) == NVML_SUCCESS && support.isSupportedDevice != 0;
  return supported_[uuid] = yes;
}

model::ProfileReading Profiler::between(const GpmSamples& kept) const {
  model::ProfileReading reading;
  const auto request = std::make_unique<nvmlGpmMetricsGet_t>();  // 15 KB
  request->version = NVML_GPM_METRICS_GET_VERSION;
  request->numMetrics = kGpmMetrics.size();
  request->sample1 = kept.older;
  request->sample2 = kept.newer;
  for (std::size_t i = 0; i < kGpmMetrics.size(); ++i)
    request->metrics[i].metricId = kGpmMetrics[i].id;
  if (gpm_.metrics(request.get()) != NVML_SUCCESS) return reading;
  for (std::size_t i = 0; i < kGpmMetrics.size(); ++i) {
    const auto& metric = request->metrics[i];
    const auto value = metric.value * kGpmMetrics[i].scale;
    if (metric.nvmlReturn != NVML_SUCCESS || !std::isfinite(value) || value < 0 ||
        value > kGpmMetrics[i].most * 1.01)
      continue;
    reading.*kGpmMetrics[i].member = std::min(value, kGpmMetrics[i].most);
  }
  return reading;
}

model::ProfileReading Profiler::sample(nvmlDevice_t device, const std::string& key,
                                       std::optional<unsigned> instance, Clock::time_point now) {
  if (samples_.size() >= kMaxSamples) forget();
  auto& kept = samples_[key];
  if (kept.primed && now - kept.at < kShortest) return kept.last;
  for (auto* buffer : {&kept.older, &kept.newer}) {
    if (*buffer == nullptr && gpm_.alloc(buffer) != NVML_SUCCESS) return {};
  }
  std::swap(kept.older, kept.newer);
  const auto result =
      instance ? gpm_.get_mig(device, *instance, kept.newer) : gpm_.get(device, kept.newer);
  const bool had_one = std::exchange(kept.primed, result == NVML_SUCCESS);
  kept.at = now;
  kept.last = had_one && kept.primed ? between(kept) : model::ProfileReading{};
  return kept.last;
}

void Profiler::read(nvmlDevice_t device, model::GpuReading& reading, Clock::time_point now) {
  if (!reading.lost.empty() || !is_supported(device, reading.uuid.text)) return;
  if (reading.instances.empty()) {
    reading.profile = sample(device, reading.uuid.text, std::nullopt, now);
    return;
  }
  if (gpm_.get_mig == nullptr) return;
  for (auto& instance : reading.instances) {
    instance.profile =
        sample(device, instance.uuid.text, static_cast<unsigned>(instance.gpu_instance), now);
  }
}

}  // namespace gantry::nvml
