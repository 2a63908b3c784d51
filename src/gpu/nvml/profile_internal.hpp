// SPDX-License-Identifier: Apache-2.0
// How busy the parts of a GPU were between two readings, if the driver measures it (GPM).
#pragma once

#include "gpu/abi/nvml_gpm.h"
#include "gpu/model/readings.hpp"
#include "gpu/nvml/nvml.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::nvml {

struct GpmFunctions {
  static GpmFunctions of(const Nvml& nvml);
  bool complete() const {
    return support != nullptr && alloc != nullptr && free != nullptr && get != nullptr &&
           metrics != nullptr;
  }
  nvmlReturn_t (*support)(nvmlDevice_t, nvmlGpmSupport_t*) = nullptr;
  gantryGpmSampleAlloc_t alloc = nullptr;
  gantryGpmSampleFree_t free = nullptr;
  gantryGpmSampleGet_t get = nullptr;
  gantryGpmMigSampleGet_t get_mig = nullptr;  // may be missing
  gantryGpmMetricsGet_t metrics = nullptr;
};

// Stores the last sample of each card and instance. The first reading of each has no values.
class Profiler {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Profiler(const GpmFunctions& functions) : gpm_(functions) {}
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Fills the profiles of the card and of its instances.
  void read(nvmlDevice_t device, model::GpuReading& reading, Clock::time_point now);
  void forget();  // when GPUs or instances have changed

 private:
  struct GpmSamples {
    nvmlGpmSample_t older = nullptr, newer = nullptr;
    Clock::time_point at;
    bool primed = false;
    model::ProfileReading last;
  };
  bool is_supported(nvmlDevice_t device, const std::string& uuid);
  model::ProfileReading sample(nvmlDevice_t device, const std::string& key,
                               std::optional<unsigned> instance, Clock::time_point now);
  model::ProfileReading between(const GpmSamples& kept) const;

  GpmFunctions gpm_;
  std::map<std::string, bool> supported_;
  std::map<std::string, GpmSamples> samples_;
};

}  // namespace gantry::nvml
