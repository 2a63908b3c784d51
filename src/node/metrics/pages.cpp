// SPDX-License-Identifier: Apache-2.0
#include "node/metrics/pages.hpp"

#include "node/metrics/pages_internal.hpp"

namespace gantry::metrics {

std::string gke_page(const Snapshot& snapshot) {
  MetricsWriter page(kPageLimit);
  add_gke(snapshot, attribute_devices(snapshot), page);
  add_gantry(snapshot, page);
  return page.take(prometheus::kSeriesLeftOut);
}

std::string dcgm_page(const Snapshot& snapshot) {
  MetricsWriter page(kPageLimit);
  add_dcgm(snapshot, attribute_devices(snapshot), page);
  add_gantry(snapshot, page);
  return page.take(prometheus::kSeriesLeftOut);
}

std::vector<std::string_view> metric_names() {
  auto names = gke_names();
  for (const auto& more : {dcgm_names(), gantry_names()})
    names.insert(names.end(), more.begin(), more.end());
  names.push_back(prometheus::kSeriesLeftOut.name);
  return names;
}

}  // namespace gantry::metrics
