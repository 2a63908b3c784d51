// SPDX-License-Identifier: Apache-2.0
#include "base/core/nearest.hpp"

#include "base/core/text.hpp"

#include <algorithm>
#include <numeric>

namespace gantry {

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  const auto wanted = to_lower(name);
  std::string nearest;
  auto least = std::max<std::size_t>(3, name.size() / 3) + 1;
  for (const auto& candidate : names) {
    const auto changes = edit_distance(wanted, to_lower(candidate));
    if (changes >= least) continue;
    least = changes;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace gantry
