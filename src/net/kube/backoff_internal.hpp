// SPDX-License-Identifier: Apache-2.0
// The time to wait after a failure: doubled each time up to a limit, with jitter, so that two
// replicas do not retry at the same moment.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace gantry::kube {

class Backoff {
 public:
  using milliseconds = std::chrono::milliseconds;
  // `seed` 0: a random seed.
  Backoff(milliseconds first, milliseconds last, std::uint64_t seed)
      : first_(first),
        last_(last),
        next_(first),
        random_(seed == 0 ? std::random_device{}() : seed) {}

  milliseconds next() {
    const auto pause = jittered(next_);
    next_ = std::min(next_ * 2, last_);
    return pause;
  }
  void reset() { next_ = first_; }

  // 80 to 120 percent of `time`.
  milliseconds jittered(milliseconds time) {
    std::uniform_real_distribution<double> factor(0.8, 1.2);
    return std::chrono::duration_cast<milliseconds>(time * factor(random_));
  }

 private:
  milliseconds first_;
  milliseconds last_;
  milliseconds next_;
  std::mt19937_64 random_;
};

}  // namespace gantry::kube
