// SPDX-License-Identifier: Apache-2.0
#include "node/metrics/snapshot.hpp"

#include <cmath>

namespace gantry::metrics {

void Histogram::add(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    if (seconds <= kBounds[i]) ++buckets_[i];
  }
  ++count_;
  sum_ += seconds;
}

}  // namespace gantry::metrics
