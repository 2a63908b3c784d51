// SPDX-License-Identifier: Apache-2.0
// What a launch costs, learned from the pace at which launches end. Nothing here asks the driver.
#pragma once

#include <stdint.h>

namespace gantry::fence {

inline constexpr uint64_t kMicrosecond = 1000;
inline constexpr uint64_t kMillisecond = 1000000;

// Long, so that a program's first launches do not become seconds of work that nobody counted on.
inline constexpr uint64_t kUnknownCostNs = 200 * kMicrosecond;
inline constexpr uint64_t kUnknownGraphNs = kMillisecond;
// A mark (an event that says how far the GPU is) about this often, and after that many launches at
// the latest: for the short kernels that a processor can hardly launch fast enough it must be rare.
inline constexpr uint64_t kMarkEveryNs = 160 * kMicrosecond;
inline constexpr uint64_t kMostBetweenMarks = 32;

struct Cost {
  uint64_t ns = 0;       // of one launch; 0: not known
  uint32_t samples = 0;  // 0: the cost is only known to be no higher

  uint64_t or_else(uint64_t unknown) const { return ns == 0 ? unknown : ns; }
};

// Work that was expected to take `expected_ns` took `took_ns`.
struct Sample {
  uint64_t expected_ns;
  uint64_t took_ns;
  bool busy;  // the GPU had more of it all the time; otherwise it took at most that long
};

inline uint64_t scaled(uint64_t ns, const Sample& sample) {
  constexpr uint64_t kMost = 64;  // one sample moves a cost no further than this
  const uint64_t expected = sample.expected_ns == 0 ? 1 : sample.expected_ns;
  if (sample.took_ns / expected >= kMost) return ns * kMost;
  if (expected / (sample.took_ns == 0 ? 1 : sample.took_ns) >= kMost) return ns / kMost + 1;
  const auto result =
      static_cast<uint64_t>(static_cast<double>(ns) * static_cast<double>(sample.took_ns) /
                            static_cast<double>(expected));
  return result == 0 ? 1 : result;
}

// `believed` is what the expectation was made from.
inline void learn(Cost& cost, uint64_t believed, const Sample& sample) {
  const uint64_t seen = scaled(believed, sample);
  if (!sample.busy && cost.ns != 0 && seen >= cost.ns) return;
  cost.ns = cost.samples == 0 ? seen : (cost.ns * 3 + seen) / 4;
  if (cost.ns == 0) cost.ns = 1;
  if (sample.busy && cost.samples == 0) cost.samples = 1;
}

inline uint64_t launches_between_marks(uint64_t cost_ns) {
  const uint64_t count = kMarkEveryNs / (cost_ns == 0 ? 1 : cost_ns);
  return count == 0 ? 1 : count > kMostBetweenMarks ? kMostBetweenMarks : count;
}

}  // namespace gantry::fence
