// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/request.hpp"

#include <algorithm>
#include <limits>

namespace gantry::podspec {

std::uint64_t Amount::on(std::uint64_t card_mib, std::uint64_t unit_mib) const {
  if (kind == Kind::MiB) return value;
  constexpr auto kMaxValue = std::numeric_limits<std::uint64_t>::max();
  if (kind == Kind::Units)
    return unit_mib != 0 && value > kMaxValue / unit_mib ? kMaxValue : value * unit_mib;
  const auto percent = std::min<std::uint64_t>(value, 100);
  return card_mib / 100 * percent + card_mib % 100 * percent / 100;
}

bool PodRequest::shared() const {
  return std::any_of(containers.begin(), containers.end(), [](const ContainerRequest& asked) {
    return asked.memory != Amount{} || asked.cores != 100;
  });
}

}  // namespace gantry::podspec
