// SPDX-License-Identifier: Apache-2.0
#include "ask/ask.hpp"

#include <algorithm>

namespace gantry::ask {

std::uint64_t Amount::on(std::uint64_t card_mib, std::uint64_t unit_mib) const {
  if (kind == Kind::MiB) return value;
  if (kind == Kind::Units) return value * unit_mib;
  return card_mib * std::min<std::uint64_t>(value, 100) / 100;
}

bool PodAsk::shared() const {
  return std::any_of(containers.begin(), containers.end(), [](const ContainerAsk& asked) {
    return asked.memory != Amount{} || asked.cores != 100;
  });
}

}  // namespace gantry::ask
