// SPDX-License-Identifier: Apache-2.0
// The cost of a launch, learned from the pace at which launches end. Nothing here calls the driver.
#pragma once

#include <stdint.h>

namespace gantry::fence {

inline constexpr uint64_t kMicrosecond = 1000;
inline constexpr uint64_t kMillisecond = 1000000;

// A high estimate, so that a program's first launches do not become seconds of unexpected work.
inline constexpr uint64_t kUnknownCostNs = 200 * kMicrosecond;
inline constexpr uint64_t kUnknownGraphNs = kMillisecond;
// A mark (an event that shows the progress of the GPU) is recorded about this often, and at the
// latest after this many launches. It costs about a microsecond of the CPU and of the GPU.
inline constexpr uint64_t kMarkEveryNs = 400 * kMicrosecond;
inline constexpr uint64_t kMaxLaunchesBetweenMarks = 32;

struct Cost {
  uint64_t ns = 0;  // of one launch; 0: unknown
  bool precise = false;

  uint64_t or_else(uint64_t unknown) const { return ns == 0 ? unknown : ns; }
};

// Work that was expected to take `expected_ns` took between these two times. Its end is noticed
// only by polling, and its beginning is the end of the previous work.
struct Sample {
  uint64_t expected_ns;
  uint64_t least_ns;
  uint64_t most_ns;
  bool disturbed = false;  // another share used the GPU just before, or during it
};

inline uint64_t scaled(uint64_t ns, uint64_t took_ns, uint64_t expected_ns) {
  constexpr double kMaxCostFactor = 64;  // one sample changes a cost by at most this factor
  double ratio = static_cast<double>(took_ns) / static_cast<double>(expected_ns + 1);
  if (ratio > kMaxCostFactor) ratio = kMaxCostFactor;
  if (ratio < 1 / kMaxCostFactor) ratio = 1 / kMaxCostFactor;
  const auto result = static_cast<uint64_t>(static_cast<double>(ns) * ratio);
  return result == 0 ? 1 : result;
}

// `believed` is the cost on which the expectation was based. A sample that is consistent with it
// changes nothing; if the cost is unknown, the upper bound is used. A disturbed sample that says
// "longer" has little weight: next to another share's requests every eighth kernel seems to take
// five times as long as it does. Its weight is not zero, because work that is always disturbed also
// has a cost.
inline void learn(Cost& cost, uint64_t believed, const Sample& sample) {
  const uint64_t least = scaled(believed, sample.least_ns, sample.expected_ns);
  const uint64_t most = scaled(believed, sample.most_ns, sample.expected_ns);
  const bool precise = sample.least_ns >= sample.most_ns / 2 && !sample.disturbed;
  if (cost.ns == 0 || (precise && !cost.precise)) {
    cost = {.ns = most, .precise = precise};
    return;
  }
  const uint64_t seen = cost.ns < least ? least : cost.ns > most ? most : cost.ns;
  const uint64_t parts = sample.disturbed && seen > cost.ns ? 32 : 4;
  cost.ns = (cost.ns * (parts - 1) + seen) / parts;
}

inline uint64_t launches_between_marks(uint64_t cost_ns) {
  const uint64_t count = kMarkEveryNs / (cost_ns == 0 ? 1 : cost_ns);
  return count == 0 ? 1 : count > kMaxLaunchesBetweenMarks ? kMaxLaunchesBetweenMarks : count;
}

}  // namespace gantry::fence
