// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "sharing/policy/share.hpp"

#include <fmt/format.h>

namespace gantry::policy {
namespace {

// An error of the share itself, regardless of others: more than the whole GPU.
Status fits_alone(const Share& share, const GpuCapacity& card) {
  if (!share.memory || share.memory->on(card.memory_bytes) <= card.memory_bytes) return {};
  return Error(Errc::Invalid, fmt::format("share {}: {} of memory, but {} has {}", share.name,
                                          to_string(*share.memory), card.uuid.text,
                                          human_bytes(card.memory_bytes)))
      .advise("use a smaller limit: --memory 50%");
}

// The committed amount of one resource of a GPU: time or memory.
struct Commitment {
  std::uint64_t own = 0;     // of the share that is added
  std::uint64_t before = 0;  // of the one that it replaces
  std::uint64_t others = 0;
  std::string names;  // of the shares that have a part of it

  std::uint64_t sum() const { return own + others; }
  // A share that takes no more than before is not refused, however much is committed: on an
  // overcommitted GPU shares can still be changed and made smaller.
  bool too_many(std::uint64_t there_is) const { return own > before && sum() > there_is; }
};

template <typename Part>
Commitment promises_of(const Share& added, std::span<const Share> present, const Part& part) {
  Commitment promises{.own = part(added)};
  for (const auto& share : present) {
    const auto has = part(share);
    if (share.name == added.name) {
      promises.before = has;
    } else if (has != 0) {
      promises.others += has;
      promises.names += fmt::format("{}{}", promises.names.empty() ? "" : ", ", share.name);
    }
  }
  return promises;
}

Error too_much(const Share& added, const GpuCapacity& card, std::string_view what,
               std::string_view sum, std::string_view names) {
  return Error(Errc::Invalid, fmt::format("share {}: {} of all shares of {} would be {} (with {})",
                                          added.name, what, card.uuid.text, sum, names))
      .advise("make one smaller with `gantry share set`, or allow this with --overcommit");
}

}  // namespace

Status check_fits(const Share& added, std::span<const Share> present, const GpuCapacity& card,
                  Overcommit overcommit) {
  GANTRY_CHECK(fits_alone(added, card));
  if (overcommit == Overcommit::Allowed) return {};
  const auto time = promises_of(
      added, present, [](const Share& s) -> std::uint64_t { return s.time_policy.percent; });
  if (time.too_many(100))
    return too_much(added, card, "compute", fmt::format("{}%", time.sum()), time.names);
  const auto memory = promises_of(added, present, [&](const Share& s) -> std::uint64_t {
    return s.memory ? s.memory->on(card.memory_bytes) : 0;
  });
  if (!memory.too_many(card.memory_bytes)) return {};
  return too_much(
      added, card, "memory",
      fmt::format("{} of {}", human_bytes(memory.sum()), human_bytes(card.memory_bytes)),
      memory.names);
}

}  // namespace gantry::policy
