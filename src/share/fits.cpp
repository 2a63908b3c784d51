// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "share/share.hpp"

#include <fmt/format.h>

namespace gantry::share {
namespace {

// A share's own error, whatever else is there: more than the whole card.
Status fits_alone(const Share& share, const Card& card) {
  if (!share.memory || share.memory->on(card.memory_bytes) <= card.memory_bytes) return {};
  return Error(
      Errc::Invalid,
      fmt::format("share {}: {} of memory, but {} has {}; ask for less: --memory 50%", share.name,
                  to_string(*share.memory), card.uuid.text, human_bytes(card.memory_bytes)));
}

Error too_much(const Share& added, std::string_view what, std::string_view sum,
               std::string_view names) {
  return {Errc::Invalid,
          fmt::format("share {}: {} of all shares of this GPU would be {} (with {}); make one "
                      "smaller (gantry share set), or say that it is wanted: --overcommit",
                      added.name, what, sum, names)};
}

}  // namespace

Status fits(const Share& added, std::span<const Share> present, const Card& card,
            Overcommit overcommit) {
  GANTRY_CHECK(fits_alone(added, card));
  if (overcommit == Overcommit::Allowed) return {};
  std::uint64_t percent = added.rights.percent;
  std::uint64_t memory = added.memory ? added.memory->on(card.memory_bytes) : 0;
  std::string names;
  for (const auto& share : present) {
    if (share.name == added.name) continue;
    percent += share.rights.percent;
    if (share.memory) memory += share.memory->on(card.memory_bytes);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", share.name);
  }
  if (percent > 100) return too_much(added, "compute", fmt::format("{}%", percent), names);
  if (memory > card.memory_bytes) {
    return too_much(added, "memory",
                    fmt::format("{} of {}", human_bytes(memory), human_bytes(card.memory_bytes)),
                    names);
  }
  return {};
}

}  // namespace gantry::share
