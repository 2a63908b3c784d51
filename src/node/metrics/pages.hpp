// SPDX-License-Identifier: Apache-2.0
// The metrics pages as Prometheus text. # HELP and # TYPE stand once before each name's series;
// what card or driver do not say has no series. A page never grows beyond kPageLimit: then series
// are left out and gantry_series_left_out says how many.
#pragma once

#include "node/metrics/snapshot.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::metrics {

inline constexpr std::size_t kPageLimit = std::size_t{16} << 20;
inline constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

// GKE's seven gauges (:2112) and our own.
std::string gke_page(const Snapshot& snapshot);
// dcgm-exporter's names (:9400) and our own.
std::string dcgm_page(const Snapshot& snapshot);

// Every name that these pages can have, for checking dashboards.
std::vector<std::string_view> metric_names();

// Who has a card or an instance of it.
struct Attribution {
  model::GpuUuid gpu, mig;         // mig: empty text for a whole card or its replicas
  bool shared = false;             // others may be there too
  model::DeviceAllocation holder;  // with pod_uid where known
  bool operator==(const Attribution&) const = default;
};
// In the order of cards, instances, holders. Ids that are not offered any more are looked for by
// their form: "GPU-...::3", "MIG-...", "nvidia0/gi7/vgpu1".
std::vector<Attribution> attribute_devices(const Snapshot& snapshot);

}  // namespace gantry::metrics
