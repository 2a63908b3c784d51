// SPDX-License-Identifier: Apache-2.0
// The best connected set among GPUs: for the node, which of its free GPUs a container gets, and for
// the scheduler, which cards a pod gets. Exact for 16 GPUs and any request.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gantry::topology {

// How well two GPUs reach each other; greater is nearer.
using LinkScore = std::int64_t;
using LinkScores = std::vector<std::vector<LinkScore>>;

// More sets than this are not looked at one by one: all requests on 16 GPUs have fewer.
inline constexpr std::uint64_t kMaxExactSets = 13'000;

struct BestSet {
  std::vector<int> chosen;          // ascending
  std::uint64_t sets_examined = 0;  // partial sets, a measure of the work
};

// The best `size` of `available` (places in `scores`), with all of `required` among them: greatest
// sum of pairs inside, then greatest sum inside what is left, then lowest places. Beyond
// kMaxExactSets a good set rather than the best.
BestSet best_set(const LinkScores& scores, std::span<const int> available,
                 std::span<const int> required, int size);

}  // namespace gantry::topology
