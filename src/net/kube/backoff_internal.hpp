// SPDX-License-Identifier: Apache-2.0
// How long to wait after a failure: twice as long each time, up to a bound, and never two replicas
// at the same moment.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace gantry::kube {

class Backoff {
 public:
  using milliseconds = std::chrono::milliseconds;
  // `seed` 0: a random one.
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

  // Four fifths to six fifths of it.
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
