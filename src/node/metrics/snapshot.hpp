// SPDX-License-Identifier: Apache-2.0
// All values that the metrics pages show. Made in the loop; can be rendered in any thread.
#pragma once

#include "gpu/model/advertised.hpp"
#include "gpu/model/readings.hpp"
#include "net/prometheus/metrics_writer.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::metrics {

// A distribution of durations, with buckets from microseconds to seconds.
class Histogram {
 public:
  static constexpr std::array kBounds{0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                      0.005,   0.01,   0.025,   0.05,   0.1,   0.25,
                                      0.5,     1.0,    2.5,     5.0,    10.0};
  void add(double seconds);
  prometheus::HistogramValues values() const { return {kBounds, buckets_, count_, sum_}; }
  bool operator==(const Histogram&) const = default;

 private:
  std::array<std::uint64_t, kBounds.size()> buckets_{};  // each includes the buckets below it
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

enum class Outcome : std::uint8_t { Ok, Error };

struct ResourceOutcome {
  std::string resource;
  Outcome outcome = Outcome::Ok;
  auto operator<=>(const ResourceOutcome&) const = default;  // NOLINT(modernize-use-nullptr)
};
struct GpuXid {
  model::GpuUuid gpu;
  unsigned xid = 0;
  auto operator<=>(const GpuXid&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Our own counters since the agent started.
struct AgentCounters {
  std::int64_t started_unix_s = 0;
  std::map<ResourceOutcome, std::uint64_t> allocations;  // containers
  std::map<ResourceOutcome, std::uint64_t> pre_starts;
  std::map<ResourceOutcome, std::uint64_t> registrations;
  std::map<std::string, Histogram> allocate_seconds;  // by resource
  std::map<std::string, Histogram> preferred_seconds;
  std::map<std::string, Histogram> pre_start_seconds;
  std::map<model::GpuUuid, std::uint64_t> health_changes;  // by card
  std::map<GpuXid, std::uint64_t> xids;
  std::map<model::GpuUuid, unsigned> last_xid;  // by card
  std::uint64_t sensor_starts = 0;
  std::uint64_t sensor_failures = 0;
  Histogram readings_seconds;                       // from request to answer
  std::map<std::string, Histogram> scrape_seconds;  // by page: "gke", "dcgm"
  std::uint64_t inventory_changes = 0;
  std::uint64_t spec_writes = 0;                             // of CDI specifications
  std::map<std::string, std::uint64_t> kubelet_connections;  // by resource
  bool operator==(const AgentCounters&) const = default;
};

struct Snapshot {
  std::string node;     // the hostname label
  std::string version;  // of Gantry
  model::Inventory inventory;
  model::Readings readings;
  std::vector<model::DeviceAllocation> holders;
  std::vector<model::AdvertisedResource> offered;
  std::vector<model::DeviceHealth> health;
  AgentCounters counters;
  bool driver_answers = false;  // NVML answered recently
};

}  // namespace gantry::metrics
