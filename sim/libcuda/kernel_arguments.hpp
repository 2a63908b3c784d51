// SPDX-License-Identifier: Apache-2.0
// Access to the arguments of a kernel and to arrays in device memory.
#pragma once

#include "sim/libcuda/kernels.hpp"
#include "sim/libcuda/memory.hpp"

#include <string.h>

namespace gantry::sim::cuda {

// Argument number `index`, which lies at `offset` when the arguments are packed.
template <class T>
bool argument(const Launch& launch, unsigned index, uint64_t offset, T& value) {
  if (launch.parameters != nullptr) {
    if (launch.parameters[index] == nullptr) return false;
    memcpy(&value, launch.parameters[index], sizeof value);
    return true;
  }
  if (launch.packed == nullptr || offset + sizeof value > launch.packed_size) return false;
  memcpy(&value, launch.packed + offset, sizeof value);
  return true;
}

inline uint64_t least(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

// An array in device memory, which may consist of several pieces. Call reachable() first.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(uint64_t address) : address_(address) {}

  T at(uint64_t index) {
    T value;
    memcpy(&value, place(index), sizeof value);
    return value;
  }
  void set(uint64_t index, T value) { memcpy(place(index), &value, sizeof value); }

 private:
  char* place(uint64_t index) {
    const uint64_t offset = index * sizeof(T);
    if (offset < from_ || offset + sizeof(T) > to_) {
      from_ = offset;
      to_ = offset + piece_at(address_ + offset, kGranule, data_);
    }
    return data_ + (offset - from_);
  }

  uint64_t address_;
  uint64_t from_ = 0;
  uint64_t to_ = 0;
  char* data_ = nullptr;
};

}  // namespace gantry::sim::cuda
