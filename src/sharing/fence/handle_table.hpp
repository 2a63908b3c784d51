// SPDX-License-Identifier: Apache-2.0
// What this process has, by the driver's number for it: a hash table in pages of its own, because
// the program's malloc may be anybody's, and may be the caller.
#pragma once

#include "gpu/abi/cuda.h"
#include "sharing/fence/lock.hpp"

#include <stddef.h>
#include <stdint.h>

namespace gantry::fence {

struct Entry {
  uint64_t key;  // pointer or handle; never 0
  uint64_t bytes;
  uint64_t other;  // what the user of the table says
  CUcontext context;
  uint32_t gpu;
  uint32_t count;
};

class HandleTable {
 public:
  // False when memory is short. An entry of that key is replaced.
  bool put(const Entry& entry);
  bool find(uint64_t key, Entry& entry);
  bool take(uint64_t key, Entry& entry);
  // Changes it in place; false where there is none. No call of the table from `change`.
  template <class Change>
  bool update(uint64_t key, Change change) {
    const Guard guard(lock_);
    Entry* entry = at(key);
    if (entry == nullptr) return false;
    change(*entry);
    return true;
  }
  // Takes out all that `matches` and shows them. No call of this table from either.
  template <class Matches, class Visit>
  void take_all(Matches matches, Visit visit) {
    const Guard guard(lock_);
    for (size_t i = 0; i < capacity_;) {
      if (entries_[i].key == 0 || !matches(entries_[i])) {
        ++i;
        continue;
      }
      const Entry entry = entries_[i];
      remove(i);  // another one may be here now
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
  // Only in the child of a fork.
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
