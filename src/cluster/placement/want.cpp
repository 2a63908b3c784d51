// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/want_internal.hpp"

#include <algorithm>

namespace gantry::placement {
namespace {

constexpr std::size_t kMostSizes = 64;  // of cards, remembered

void add(Load& to, std::uint64_t mib, std::uint32_t cores) {
  const bool alone = cores >= kAllCores;
  to.impossible = to.impossible || (to.slots > 0 && (alone || to.alone));
  to.alone = to.alone || alone;
  to.mib = std::min(to.mib + mib, kMostMib);
  to.cores += cores;
  ++to.slots;
}

void raise(Load& peak, const Load& to) {
  peak.mib = std::max(peak.mib, to.mib);
  peak.cores = std::max(peak.cores, to.cores);
  peak.slots = std::max(peak.slots, to.slots);
  peak.alone = peak.alone || to.alone;
  peak.impossible = peak.impossible || to.impossible;
}

}  // namespace

Want::Want(const podspec::PodAsk& ask) : ask_(&ask), whole_(!ask.shared()) {
  const auto& wishes = ask.wishes;
  picky_ = !wishes.types.empty() || !wishes.not_types.empty() || !wishes.uuids.empty() ||
           !wishes.not_uuids.empty();
  too_big_ = ask.containers.size() > kMostContainers;
  for (const auto& asked : ask.containers) {
    if (too_big_) return;
    too_big_ = asked.gpus > kMostGpus;
    uniform_ = uniform_ && (gpus_ == 0 || asked.gpus == 0 || asked.gpus == gpus_);
    gpus_ = std::max(gpus_, asked.gpus);
    percent_ = percent_ || asked.memory.kind == podspec::Amount::Kind::Percent;
    containers_.push_back({.phase = asked.phase,
                           .gpus = asked.gpus,
                           .cores = std::min(asked.cores, kAllCores),
                           .memory = asked.memory});
  }
  plain_ = uniform_ && !picky_ && wishes.near != podspec::Near::Numa && gpus_ > 0;
  const auto count = containers_.size();
  all_ = count == kMostContainers ? ~Containers{0} : (Containers{1} << count) - 1;
}

std::uint64_t Want::mib_of(std::size_t container, std::uint64_t card_mib,
                           std::uint64_t unit_mib) const {
  const auto& memory = containers_[container].memory;
  if (memory.value > kMostMib) return kMostMib;
  return std::min(memory.on(card_mib, std::min<std::uint64_t>(unit_mib, 1024)), kMostMib);
}

Load Want::load(Containers on_it, std::uint64_t card_mib, std::uint64_t unit_mib) const {
  Load peak;
  Load running;  // sidecars so far, then the others beside them
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    if ((on_it >> i & 1) == 0) continue;
    const auto mib = mib_of(i, card_mib, unit_mib);
    if (containers_[i].phase != podspec::Phase::Init) {
      add(running, mib, containers_[i].cores);
      continue;
    }
    Load meanwhile = running;
    add(meanwhile, mib, containers_[i].cores);
    raise(peak, meanwhile);
  }
  raise(peak, running);
  return peak;
}

const Want::Known& Want::look_up(std::uint64_t card_mib, std::uint64_t unit_mib) {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
    return known.is_it(card_mib, unit_mib);
  });
  last_ = static_cast<std::size_t>(found - known_.begin());
  if (found == known_.end()) {
    if (known_.size() >= kMostSizes) known_.clear();
    last_ = known_.size();
    known_.push_back(worked_out(card_mib, unit_mib));
  }
  return known_[last_];
}

Want::Known Want::worked_out(std::uint64_t card_mib, std::uint64_t unit_mib) const {
  Known made{.card_mib = card_mib, .unit_mib = unit_mib};
  for (std::uint32_t i = 0; i < gpus_; ++i) {
    Containers on_it = 0;
    for (std::size_t c = 0; c < containers_.size(); ++c)
      if (containers_[c].gpus > i) on_it |= Containers{1} << c;
    made.shared.push_back(load(on_it, card_mib, unit_mib));
  }
  if (!several()) return made;
  for (std::size_t c = 0; c < containers_.size(); ++c)
    made.own.push_back(load(Containers{1} << c, card_mib, unit_mib));
  return made;
}

}  // namespace gantry::placement
