// SPDX-License-Identifier: Apache-2.0
// The agent's metrics about itself and about the resources that it offers.
#include "node/metrics/pages_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

namespace gantry::metrics {
namespace {

using prometheus::kBuildInfo;

constexpr MetricInfo kStart{"gantry_start_time_seconds", kGauge,
                            "Unix time at which the agent started."};
constexpr MetricInfo kDriverUp{"gantry_driver_up", kGauge, "1 while NVML answers."};
constexpr MetricInfo kReadingsTime{"gantry_readings_timestamp_seconds", kGauge,
                                   "Unix time at which the GPUs were read for this page."};
constexpr MetricInfo kUsable{"gantry_gpu_usable", kGauge,
                             "1 if the card or MIG instance is healthy."};
constexpr MetricInfo kDevices{"gantry_devices", kGauge, "Devices offered to the kubelet."};
constexpr MetricInfo kDevicesUsable{"gantry_devices_usable", kGauge,
                                    "Devices offered to the kubelet that are healthy."};
constexpr MetricInfo kDevicesHeld{"gantry_devices_held", kGauge,
                                  "Devices offered to the kubelet that containers hold."};
constexpr MetricInfo kAllocations{"gantry_allocations_total", kCounter,
                                  "Containers for which the kubelet allocated devices."};
constexpr MetricInfo kPreStarts{
    "gantry_pre_starts_total", kCounter,
    "Containers whose start the kubelet announced with PreStartContainer."};
constexpr MetricInfo kRegistrations{"gantry_registrations_total", kCounter,
                                    "Registrations with the kubelet."};
constexpr MetricInfo kConnections{"gantry_kubelet_connections", kGauge,
                                  "Connections that the kubelet holds to a resource's plugin."};
constexpr MetricInfo kAllocateTime{"gantry_allocate_duration_seconds", kHistogram,
                                   "Time to answer Allocate."};
constexpr MetricInfo kPreferredTime{"gantry_preferred_allocation_duration_seconds", kHistogram,
                                    "Time to answer GetPreferredAllocation."};
constexpr MetricInfo kPreStartTime{"gantry_pre_start_duration_seconds", kHistogram,
                                   "Time to answer PreStartContainer."};
constexpr MetricInfo kHealthChanges{"gantry_health_changes_total", kCounter,
                                    "Times that a card became healthy or unhealthy."};
constexpr MetricInfo kXids{"gantry_xid_events_total", kCounter, "XID events by card and number."};
constexpr MetricInfo kSensorStarts{"gantry_sensor_starts_total", kCounter,
                                   "Starts of the process that holds NVML."};
constexpr MetricInfo kSensorFailures{
    "gantry_sensor_failures_total", kCounter,
    "Times that the process that holds NVML hung, crashed or could not start NVML."};
constexpr MetricInfo kReadingsTook{"gantry_readings_duration_seconds", kHistogram,
                                   "Time to read all GPUs."};
constexpr MetricInfo kScrapes{"gantry_scrape_duration_seconds", kHistogram, "Time to make a page."};
constexpr MetricInfo kInventory{"gantry_inventory_changes_total", kCounter,
                                "Times that GPUs, MIG instances or the driver changed."};
constexpr MetricInfo kSpecs{"gantry_cdi_spec_writes_total", kCounter, "CDI specs written."};

constexpr std::array kAll{
    kBuildInfo,      kStart,         kDriverUp,     kReadingsTime,  kUsable,        kDevices,
    kDevicesUsable,  kDevicesHeld,   kAllocations,  kPreStarts,     kRegistrations, kConnections,
    kAllocateTime,   kPreferredTime, kPreStartTime, kHealthChanges, kXids,          kSensorStarts,
    kSensorFailures, kReadingsTook,  kScrapes,      kInventory,     kSpecs};

void add_outcomes(MetricsWriter& page, const MetricInfo& metric,
                  const std::map<ResourceOutcome, std::uint64_t>& counts) {
  page.begin(metric);
  for (const auto& [key, count] : counts) {
    auto labels = label("resource", key.resource);
    add_label(labels, "outcome", key.outcome == Outcome::Ok ? "ok" : "error");
    page.series(labels, count);
  }
}

void add_times(MetricsWriter& page, const MetricInfo& metric, std::string_view name,
               const std::map<std::string, Histogram>& times) {
  page.begin(metric);
  for (const auto& [key, histogram] : times) page.histogram(label(name, key), histogram.values());
}

template <class Map>
void add_counts(MetricsWriter& page, const MetricInfo& metric, std::string_view name,
                const Map& counts) {
  page.begin(metric);
  for (const auto& [key, count] : counts) page.series(label(name, key), count);
}

bool is_usable(const Snapshot& snapshot, const model::AdvertisedDevice& device) {
  return std::none_of(snapshot.health.begin(), snapshot.health.end(),
                      [&](const model::DeviceHealth& health) {
                        return !health.usable && health.gpu == device.gpu &&
                               (health.mig.text.empty() || health.mig == device.mig);
                      });
}

void add_devices(const Snapshot& snapshot, MetricsWriter& page) {
  page.begin(kDevices);
  for (const auto& resource : snapshot.offered)
    page.series(label("resource", resource.name), std::uint64_t{resource.devices.size()});
  page.begin(kDevicesUsable);
  for (const auto& resource : snapshot.offered) {
    const auto usable = std::count_if(
        resource.devices.begin(), resource.devices.end(),
        [&](const model::AdvertisedDevice& device) { return is_usable(snapshot, device); });
    page.series(label("resource", resource.name), static_cast<std::uint64_t>(usable));
  }
  page.begin(kDevicesHeld);
  for (const auto& resource : snapshot.offered) {
    std::unordered_set<std::string_view> held;
    for (const auto& holder : snapshot.holders) {
      if (holder.resource == resource.name) held.insert(holder.ids.begin(), holder.ids.end());
    }
    page.series(label("resource", resource.name), std::uint64_t{held.size()});
  }
}

void add_health(const Snapshot& snapshot, MetricsWriter& page) {
  page.begin(kUsable);
  for (const auto& health : snapshot.health) {
    auto labels = label("gpu", health.gpu.text);
    if (!health.mig.text.empty()) add_label(labels, "mig", health.mig.text);
    page.series(labels, std::uint64_t{health.usable ? 1U : 0U});
  }
  page.begin(kHealthChanges);
  for (const auto& [gpu, count] : snapshot.counters.health_changes)
    page.series(label("gpu", gpu.text), count);
  page.begin(kXids);
  for (const auto& [key, count] : snapshot.counters.xids) {
    auto labels = label("gpu", key.gpu.text);
    add_label(labels, "xid", fmt::format_int(key.xid).c_str());
    page.series(labels, count);
  }
}

}  // namespace

void add_gantry(const Snapshot& snapshot, MetricsWriter& page) {
  const auto& counters = snapshot.counters;
  page.begin(kBuildInfo);
  page.series(label("version", snapshot.version), std::uint64_t{1});
  page.single(kStart, static_cast<double>(counters.started_unix_s));
  page.single(kDriverUp, snapshot.driver_answers ? 1.0 : 0.0);
  if (snapshot.readings.at_unix_ms != 0)
    page.single(kReadingsTime, static_cast<double>(snapshot.readings.at_unix_ms) / 1000);
  add_devices(snapshot, page);
  add_health(snapshot, page);
  add_outcomes(page, kAllocations, counters.allocations);
  add_outcomes(page, kPreStarts, counters.pre_starts);
  add_outcomes(page, kRegistrations, counters.registrations);
  add_counts(page, kConnections, "resource", counters.kubelet_connections);
  add_times(page, kAllocateTime, "resource", counters.allocate_seconds);
  add_times(page, kPreferredTime, "resource", counters.preferred_seconds);
  add_times(page, kPreStartTime, "resource", counters.pre_start_seconds);
  page.single(kSensorStarts, static_cast<double>(counters.sensor_starts));
  page.single(kSensorFailures, static_cast<double>(counters.sensor_failures));
  page.begin(kReadingsTook);
  page.histogram("", counters.readings_seconds.values());
  add_times(page, kScrapes, "page", counters.scrape_seconds);
  page.single(kInventory, static_cast<double>(counters.inventory_changes));
  page.single(kSpecs, static_cast<double>(counters.spec_writes));
}

std::vector<std::string_view> gantry_names() {
  std::vector<std::string_view> names;
  names.reserve(kAll.size());
  for (const auto& metric : kAll) names.push_back(metric.name);
  return names;
}

}  // namespace gantry::metrics
