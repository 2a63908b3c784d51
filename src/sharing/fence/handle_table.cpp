// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing; removal shifts the following entries back, so there are no
// tombstones.
#include "sharing/fence/handle_table.hpp"

#include <sys/mman.h>

namespace gantry::fence {
namespace {

constexpr size_t kFirst = 1024;

Entry* map_entries(size_t capacity) {
  void* made = mmap(nullptr, capacity * sizeof(Entry), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return made == MAP_FAILED ? nullptr : static_cast<Entry*>(made);
}

}  // namespace

size_t HandleTable::home(uint64_t key) const {
  return (key * 0x9e3779b97f4a7c15U >> 20U) & (capacity_ - 1);
}

Entry* HandleTable::at(uint64_t key) {
  if (capacity_ == 0) return nullptr;
  for (size_t i = home(key); entries_[i].key != 0; i = (i + 1) & (capacity_ - 1)) {
    if (entries_[i].key == key) return &entries_[i];
  }
  return nullptr;
}

bool HandleTable::grow() {
  const size_t wanted = capacity_ == 0 ? kFirst : capacity_ * 2;
  Entry* made = map_entries(wanted);
  if (made == nullptr) return false;
  Entry* const old = entries_;
  const size_t old_capacity = capacity_;
  entries_ = made;
  capacity_ = wanted;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (old[i].key == 0) continue;
    size_t to = home(old[i].key);
    while (entries_[to].key != 0) to = (to + 1) & (capacity_ - 1);
    entries_[to] = old[i];
  }
  if (old != nullptr) munmap(old, old_capacity * sizeof(Entry));
  return true;
}

bool HandleTable::put(const Entry& entry) {
  const Guard guard(lock_);
  if (Entry* known = at(entry.key)) {
    *known = entry;
    return true;
  }
  if (count_ * 2 >= capacity_ && !grow()) return false;
  size_t to = home(entry.key);
  while (entries_[to].key != 0) to = (to + 1) & (capacity_ - 1);
  entries_[to] = entry;
  ++count_;
  return true;
}

bool HandleTable::find(uint64_t key, Entry& entry) {
  const Guard guard(lock_);
  const Entry* known = at(key);
  if (known == nullptr) return false;
  entry = *known;
  return true;
}

bool HandleTable::take(uint64_t key, Entry& entry) {
  const Guard guard(lock_);
  Entry* known = at(key);
  if (known == nullptr) return false;
  entry = *known;
  remove(static_cast<size_t>(known - entries_));
  return true;
}

void HandleTable::remove(size_t index) {
  const size_t mask = capacity_ - 1;
  size_t hole = index;
  for (size_t i = (hole + 1) & mask; entries_[i].key != 0; i = (i + 1) & mask) {
    // An entry may move back only if its home is not between the hole and itself.
    if (((i - home(entries_[i].key)) & mask) < ((i - hole) & mask)) continue;
    entries_[hole] = entries_[i];
    hole = i;
  }
  entries_[hole] = {};
  --count_;
}

void HandleTable::forget() {
  if (entries_ != nullptr) munmap(entries_, capacity_ * sizeof(Entry));
  entries_ = nullptr;
  capacity_ = 0;
  count_ = 0;
  lock_.reset();
}

}  // namespace gantry::fence
