// SPDX-License-Identifier: Apache-2.0
// A hash table of this process's objects, by the driver's handle. It uses its own memory pages,
// because the program may have replaced malloc, and malloc may even be the caller.
#pragma once

#include "gpu/abi/cuda.h"
#include "sharing/fence/lock.hpp"

#include <stddef.h>
#include <stdint.h>

namespace gantry::fence {

struct Entry {
  uint64_t key;  // pointer or handle; never 0
  uint64_t bytes;
  uint64_t other;  // set by the user of the table
  CUcontext context;
  uint32_t gpu;
  uint32_t count;
};

template <class Object>
uint64_t key_of(const Object* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

class HandleTable {
 public:
  // False if out of host memory. Replaces an entry with the same key.
  bool put(const Entry& entry);
  bool find(uint64_t key, Entry& entry);
  bool take(uint64_t key, Entry& entry);
  // Changes an entry in place; false if there is none. `change` must not call the table.
  template <class Change>
  bool update(uint64_t key, Change change) {
    const Guard guard(lock_);
    Entry* entry = at(key);
    if (entry == nullptr) return false;
    change(*entry);
    return true;
  }
  // Removes all entries that `matches` accepts and calls `visit` for each. Neither function may
  // call this table.
  template <class Matches, class Visit>
  void take_all(Matches matches, Visit visit) {
    const Guard guard(lock_);
    for (size_t i = 0; i < capacity_;) {
      if (entries_[i].key == 0 || !matches(entries_[i])) {
        ++i;
        continue;
      }
      const Entry entry = entries_[i];
      remove(i);  // another entry may be here now
      visit(entry);
    }
  }
  template <class Visit>
  void each(Visit visit) {
    const Guard guard(lock_);
    for (size_t i = 0; i < capacity_; ++i) {
      if (entries_[i].key != 0) visit(entries_[i]);
    }
  }
  // Call this only in the child of a fork.
  void forget();

 private:
  Entry* at(uint64_t key);
  void remove(size_t index);
  bool grow();
  size_t home(uint64_t key) const;

  Lock lock_;
  Entry* entries_ = nullptr;
  size_t capacity_ = 0;  // a power of two
  size_t count_ = 0;
};

}  // namespace gantry::fence
