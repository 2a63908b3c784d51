// SPDX-License-Identifier: Apache-2.0
#include "gpu/topology/best_set.hpp"

#include <algorithm>

namespace gantry::topology {
namespace {

// Tries sets in lexicographic order; only a better one replaces the best, so among equal sets the
// lowest indices win. The remaining GPUs score total - sum of degrees + inside: among sets with
// equal inside, the smallest sum of degrees leaves the best rest.
class Search {
 public:
  Search(const LinkScores& scores, std::vector<int> free, std::vector<int> start, int size)
      : scores_(scores), free_(std::move(free)), chosen_(std::move(start)), size_(size) {
    std::vector<int> all = free_;
    all.insert(all.end(), chosen_.begin(), chosen_.end());
    for (const int i : free_) {
      LinkScore degree = 0;
      for (const int j : all) degree += i == j ? 0 : at(i, j);
      degrees_.push_back(degree);
      LinkScore gain = 0;
      for (const int j : chosen_) gain += at(i, j);
      gains_.push_back(gain);
    }
  }

  BestSet exact() {
    step(0, 0, 0, gains_);
    return {.chosen = best_, .sets_examined = sets_examined_};
  }

  // Adds the GPU with the greatest gain, one after the other, then exchanges single GPUs while that
  // helps.
  BestSet good() {
    std::vector<bool> in(free_.size(), false);
    auto gains = gains_;
    const auto flip = [&](std::size_t i) {
      in[i] = !in[i];
      for (std::size_t j = 0; j < free_.size(); ++j)
        if (j != i) gains[j] += (in[i] ? 1 : -1) * at(free_[i], free_[j]);
    };
    const auto wanted = static_cast<std::size_t>(size_) - chosen_.size();
    for (std::size_t n = 0; n < wanted; ++n) {
      std::size_t best = free_.size();
      for (std::size_t i = 0; i < free_.size(); ++i)
        if (!in[i] && (best == free_.size() || better(gains, i, best))) best = i;
      flip(best);
    }
    for (std::size_t rounds = 0; rounds < free_.size() && exchange(in, gains, flip); ++rounds) {
    }
    auto result = chosen_;
    for (std::size_t i = 0; i < free_.size(); ++i)
      if (in[i]) result.push_back(free_[i]);
    std::sort(result.begin(), result.end());
    return {.chosen = result, .sets_examined = sets_examined_};
  }

 private:
  LinkScore at(int i, int j) const {
    return scores_[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  }

  bool better(const std::vector<LinkScore>& gains, std::size_t i, std::size_t than) const {
    if (gains[i] != gains[than]) return gains[i] > gains[than];
    return degrees_[i] < degrees_[than];
  }

  template <class Flip>
  bool exchange(const std::vector<bool>& in, const std::vector<LinkScore>& gains,
                const Flip& flip) {
    for (std::size_t out = 0; out < free_.size(); ++out) {
      if (!in[out]) continue;
      for (std::size_t other = 0; other < free_.size(); ++other) {
        if (in[other]) continue;
        ++sets_examined_;
        const auto with = gains[other] - at(free_[out], free_[other]);
        if (with <= gains[out]) continue;
        flip(out);
        flip(other);
        return true;
      }
    }
    return false;
  }

  // `gains[i]`: the score that free_[i] would add to the pairs inside.
  void step(std::size_t from, LinkScore inside, LinkScore degree,
            const std::vector<LinkScore>& gains) {
    ++sets_examined_;
    if (chosen_.size() == static_cast<std::size_t>(size_)) {
      consider(inside, degree);
      return;
    }
    const auto missing = static_cast<std::size_t>(size_) - chosen_.size();
    const bool last = missing == 1;
    std::vector<LinkScore> next(last ? 0 : gains.size());
    for (std::size_t i = from; i + missing <= free_.size(); ++i) {
      if (last) {
        ++sets_examined_;
        if (!is_better(inside + gains[i], degree + degrees_[i])) continue;
        chosen_.push_back(free_[i]);
        consider(inside + gains[i], degree + degrees_[i]);
        chosen_.pop_back();
        continue;
      }
      const auto& row = scores_[static_cast<std::size_t>(free_[i])];
      for (std::size_t j = i + 1; j < free_.size(); ++j)
        next[j] = gains[j] + row[static_cast<std::size_t>(free_[j])];
      chosen_.push_back(free_[i]);
      step(i + 1, inside + gains[i], degree + degrees_[i], next);
      chosen_.pop_back();
    }
  }

  bool is_better(LinkScore inside, LinkScore degree) const {
    if (best_.empty()) return true;
    return inside != best_inside_ ? inside > best_inside_ : degree < best_degree_;
  }

  void consider(LinkScore inside, LinkScore degree) {
    if (!is_better(inside, degree)) return;
    best_inside_ = inside;
    best_degree_ = degree;
    best_ = chosen_;
    std::sort(best_.begin(), best_.end());
  }

  const LinkScores& scores_;
  std::vector<int> free_;  // ascending, without the required ones
  std::vector<int> chosen_;
  int size_;
  std::vector<LinkScore> degrees_;
  std::vector<LinkScore> gains_;
  std::vector<int> best_;
  LinkScore best_inside_ = 0;
  LinkScore best_degree_ = 0;
  std::uint64_t sets_examined_ = 0;
};

// n over k, or more than kMaxExactSets.
std::uint64_t sets_of(std::uint64_t n, std::uint64_t k) {
  k = std::min(k, n - k);
  std::uint64_t sets = 1;
  for (std::uint64_t i = 1; i <= k; ++i) {
    sets = sets * (n - k + i) / i;
    if (sets > kMaxExactSets) return sets;
  }
  return sets;
}

}  // namespace

BestSet best_set(const LinkScores& scores, std::span<const int> available,
                 std::span<const int> required, int size) {
  std::vector<int> start(required.begin(), required.end());
  std::sort(start.begin(), start.end());
  start.erase(std::unique(start.begin(), start.end()), start.end());
  std::vector<int> free(available.begin(), available.end());
  std::sort(free.begin(), free.end());
  free.erase(std::unique(free.begin(), free.end()), free.end());
  std::erase_if(free, [&](int i) { return std::binary_search(start.begin(), start.end(), i); });
  const auto wanted = std::clamp(size, static_cast<int>(start.size()),
                                 static_cast<int>(start.size() + free.size()));
  if (wanted == 0) return {};
  const auto more = static_cast<std::uint64_t>(wanted) - start.size();
  const bool few = sets_of(free.size(), more) <= kMaxExactSets;
  Search search(scores, std::move(free), std::move(start), wanted);
  return few ? search.exact() : search.good();
}

}  // namespace gantry::topology
