// SPDX-License-Identifier: Apache-2.0
// Reads a whole list from the driver into its own memory, because the caller's buffer may be too
// small. Does not use malloc, because the program may have replaced it with one that cannot be
// called here.
#pragma once

#include "gpu/abi/nvml.h"

#include <stddef.h>
#include <sys/mman.h>

namespace gantry::fence::nvml {

template <typename Item>
class DriverList {
 public:
  DriverList() = default;
  ~DriverList() { drop(); }
  DriverList(const DriverList&) = delete;
  DriverList& operator=(const DriverList&) = delete;

  // `ask(count, items)` is the driver's function. While the buffer is too small, it returns
  // NVML_ERROR_INSUFFICIENT_SIZE and the number of items. Processes may start and end in between.
  template <typename Ask>
  nvmlReturn_t fill(const Ask& ask) {
    unsigned int wanted = kRoom;
    for (int tries = 0; tries < kTries; ++tries) {
      if (!make_room(wanted)) return NVML_ERROR_MEMORY;
      size_ = room_;
      const nvmlReturn_t result = ask(&size_, items_);
      if (result != NVML_ERROR_INSUFFICIENT_SIZE) {
        if (result != NVML_SUCCESS || size_ > room_) size_ = 0;
        return result;
      }
      if (size_ > kMaxListLength) break;
      wanted = (size_ > room_ ? size_ : room_) + kRoom;
    }
    size_ = 0;
    return NVML_ERROR_UNKNOWN;
  }

  const Item* begin() const { return items_; }
  const Item* end() const { return items_ + size_; }

 private:
  static constexpr unsigned int kRoom = 128;
  static constexpr unsigned int kMaxListLength = 1U << 16U;
  static constexpr int kTries = 8;

  bool make_room(unsigned int count) {
    drop();
    void* at = mmap(nullptr, count * sizeof(Item), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
    items_ = static_cast<Item*>(at);
    room_ = count;
    return true;
  }
  void drop() {
    if (items_ != nullptr) munmap(items_, room_ * sizeof(Item));
    items_ = nullptr;
    room_ = 0;
    size_ = 0;
  }

  Item* items_ = nullptr;
  unsigned int room_ = 0;
  unsigned int size_ = 0;
};

// Collects the items that a hook passes on: stores as many as fit into the caller's buffer and
// counts all.
template <typename Item>
class OutputList {
 public:
  OutputList(Item* items, unsigned int room) : items_(items), room_(items == nullptr ? 0 : room) {}
  void add(const Item& item) {
    if (found_ < room_) items_[found_] = item;
    ++found_;
  }
  unsigned int found() const { return found_; }
  bool fits() const { return found_ <= room_; }
  // Ends such a call as NVML does.
  nvmlReturn_t end(unsigned int* count) const {
    *count = found_;
    return fits() ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
  }

 private:
  Item* items_;
  unsigned int room_;
  unsigned int found_ = 0;
};

}  // namespace gantry::fence::nvml
