// SPDX-License-Identifier: Apache-2.0
// The metrics pages in the Prometheus text format. A value that the card or the driver does not
// report has no series. A page never grows beyond kPageLimit: further series are left out, and
// gantry_series_left_out says how many.
#pragma once

#include "node/metrics/snapshot.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::metrics {

inline constexpr std::size_t kPageLimit = std::size_t{16} << 20;

// GKE's seven gauges (:2112) and our own metrics.
std::string gke_page(const Snapshot& snapshot);
// The metrics of dcgm-exporter (:9400) and our own metrics.
std::string dcgm_page(const Snapshot& snapshot);

// All metric names that these pages can have, for checking dashboards.
std::vector<std::string_view> metric_names();

// Which container has a card or an instance of it.
struct Attribution {
  model::GpuUuid gpu, mig;         // mig: empty text for a whole card or its replicas
  bool shared = false;             // other containers may have it too
  model::DeviceAllocation holder;  // with the UID of its pod if known
  bool operator==(const Attribution&) const = default;
};
// Ordered by card, instance and holder. Ids that are no longer offered are recognized by their
// form: "GPU-...::3", "MIG-...", "nvidia0/gi7/vgpu1".
std::vector<Attribution> attribute_devices(const Snapshot& snapshot);

}  // namespace gantry::metrics
