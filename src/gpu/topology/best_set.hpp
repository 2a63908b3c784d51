// SPDX-License-Identifier: Apache-2.0
// Finds the best connected set of GPUs. The node uses it to choose the free GPUs of a container,
// the scheduler to choose the cards of a pod. Exact for 16 GPUs and any request.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gantry::topology {

// How well two GPUs are connected; greater is better.
using LinkScore = std::int64_t;
using LinkScores = std::vector<std::vector<LinkScore>>;

// If there are more sets than this, they are not all examined. All requests on 16 GPUs have fewer.
inline constexpr std::uint64_t kMaxExactSets = 13'000;

struct BestSet {
  std::vector<int> chosen;          // ascending
  std::uint64_t sets_examined = 0;  // partial sets, a measure of the work
};

// Chooses `size` of `available` (indices into `scores`), including all of `required`: the greatest
// sum over pairs inside, then the greatest sum inside the remaining GPUs, then the lowest indices.
// Beyond kMaxExactSets it returns a good set, not always the best.
BestSet best_set(const LinkScores& scores, std::span<const int> available,
                 std::span<const int> required, int size);

}  // namespace gantry::topology
