// SPDX-License-Identifier: Apache-2.0
#include "node/metrics/text.hpp"

#include "node/metrics/page_internal.hpp"

namespace gantry::metrics {
namespace {

constexpr Metric kLeftOut{"gantry_series_left_out", Type::Gauge,
                          "Series that found no room on this page."};

}  // namespace

std::string gke_page(const Snapshot& snapshot) {
  Page page;
  add_gke(snapshot, attribute(snapshot), page);
  add_own(snapshot, page);
  return page.take(kLeftOut);
}

std::string dcgm_page(const Snapshot& snapshot) {
  Page page;
  add_dcgm(snapshot, attribute(snapshot), page);
  add_own(snapshot, page);
  return page.take(kLeftOut);
}

std::vector<std::string_view> metric_names() {
  auto names = gke_names();
  for (const auto& more : {dcgm_names(), own_names()})
    names.insert(names.end(), more.begin(), more.end());
  names.push_back(kLeftOut.name);
  return names;
}

}  // namespace gantry::metrics
