// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/name_table_internal.hpp"

namespace gantry::placement {
void NameTable::insert(std::string_view name, Id id) {
  if ((used_ + 1) * 2 > slots_.size()) grow();
  if (id >= names_.size()) names_.resize(id + std::size_t{1});
  names_[id] = {.first = static_cast<std::uint32_t>(text_.size()),
                .length = static_cast<std::uint32_t>(name.size())};
  text_ += name;
  const auto hashed = hash(name);
  slots_[slot_index(name, hashed)] = {.high = high_of(hashed), .id = id};
  ++used_;
}

// Later entries move up, so that no lookup stops early at the gap.
void NameTable::erase(std::string_view name) {
  const auto mask = slots_.size() - 1;
  auto hole = slot_index(name, hash(name));
  if (slots_[hole].id == kNone) return;
  waste_ += name.size();
  names_[slots_[hole].id] = {};
  for (auto at = (hole + 1) & mask; slots_[at].id != kNone; at = (at + 1) & mask) {
    const auto wanted = home(hash((*this)[slots_[at].id]));
    if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = {};
  --used_;
  if (waste_ > text_.size() / 2) tidy();
}

void NameTable::tidy() {
  std::string nominated;
  for (auto& name : names_) {
    const auto text = std::string_view(text_).substr(name.first, name.length);
    name.first = static_cast<std::uint32_t>(nominated.size());
    nominated += text;
  }
  text_ = std::move(nominated);
  waste_ = 0;
}

void NameTable::grow() {
  const auto old = std::move(slots_);
  slots_.assign(old.size() * 2, {});
  for (const auto& slot : old) {
    if (slot.id == kNone) continue;
    auto at = home(hash((*this)[slot.id]));
    while (slots_[at].id != kNone) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

}  // namespace gantry::placement
