// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/visible.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

namespace gantry::sim::cuda {
namespace {

constexpr size_t kNone = ~static_cast<size_t>(0);
constexpr size_t kMaxVisibleGpus = 64;

// Indices of each GPU's first candidate, in CUDA's order: fastest first unless CUDA_DEVICE_ORDER
// says otherwise.
struct Order {
  size_t first[kMaxVisibleGpus];
  size_t count;
};

Order device_order(const Candidate* candidates, size_t count, const char* order) {
  Order result{};
  for (size_t i = 0; i < count && result.count < kMaxVisibleGpus; ++i) {
    if (i == 0 || candidates[i].gpu != candidates[i - 1].gpu) result.first[result.count++] = i;
  }
  if (order != nullptr && strcmp(order, "PCI_BUS_ID") == 0) return result;
  for (size_t i = 1; i < result.count; ++i) {  // stable, and there are few
    const size_t moving = result.first[i];
    size_t at = i;
    for (; at > 0 && candidates[result.first[at - 1]].speed < candidates[moving].speed; --at)
      result.first[at] = result.first[at - 1];
    result.first[at] = moving;
  }
  return result;
}

// A UUID may be abbreviated if it still matches only one device.
size_t by_uuid(const Candidate* candidates, size_t count, const char* word, size_t length) {
  size_t found = kNone;
  for (size_t i = 0; i < count; ++i) {
    const char* uuid = candidates[i].mig_uuid;
    if (strncasecmp(word, "GPU-", 4) == 0) {
      const bool first = i == 0 || candidates[i].gpu != candidates[i - 1].gpu;
      uuid = first ? candidates[i].gpu_uuid : nullptr;
    }
    if (uuid == nullptr || strncasecmp(uuid, word, length) != 0) continue;
    if (found != kNone) return kNone;
    found = i;
  }
  return found;
}

// "MIG-GPU-<uuid>/<gi>/<ci>", the form of drivers before 470.
size_t by_old_name(const Candidate* candidates, size_t count, const char* word, size_t length) {
  for (size_t i = 0; i < count; ++i) {
    if (candidates[i].gi < 0) continue;
    char name[160];
    snprintf(name, sizeof name, "MIG-%.96s/%d/%d", candidates[i].gpu_uuid, candidates[i].gi,
             candidates[i].ci);
    if (strlen(name) == length && strncasecmp(name, word, length) == 0) return i;
  }
  return kNone;
}

size_t by_word(const Candidate* candidates, size_t count, const Order& order, const char* word,
               size_t length) {
  if (length == 0) return kNone;
  if (word[0] >= '0' && word[0] <= '9') {
    char* end = nullptr;
    const unsigned long index = strtoul(word, &end, 10);
    return end == word + length && index < order.count ? order.first[index] : kNone;
  }
  if (length > 8 && strncasecmp(word, "MIG-GPU-", 8) == 0)
    return by_old_name(candidates, count, word, length);
  if (length > 4 && (strncasecmp(word, "GPU-", 4) == 0 || strncasecmp(word, "MIG-", 4) == 0))
    return by_uuid(candidates, count, word, length);
  return kNone;
}

class DeviceSelection {
 public:
  DeviceSelection(size_t* indices, size_t capacity) : indices_(indices), capacity_(capacity) {}
  bool add(size_t index) {
    for (size_t i = 0; i < count_; ++i) {
      if (indices_[i] == index) return false;
    }
    if (count_ == capacity_) return false;
    indices_[count_++] = index;
    return true;
  }
  void only(size_t index) {
    indices_[0] = index;
    count_ = 1;
  }
  size_t count() const { return count_; }
  size_t operator[](size_t at) const { return indices_[at]; }

 private:
  size_t* indices_;
  size_t capacity_;
  size_t count_ = 0;
};

}  // namespace

size_t choose_visible(const Candidate* candidates, size_t count, const char* visible,
                      const char* order, size_t* chosen, size_t capacity) {
  const Order gpus = device_order(candidates, count, order);
  DeviceSelection result(chosen, capacity);
  if (visible == nullptr) {
    for (size_t i = 0; i < gpus.count; ++i) result.add(gpus.first[i]);
  } else {
    for (const char* word = visible;; ++word) {
      while (*word == ' ') ++word;
      const size_t length = strcspn(word, ", ");
      const size_t index = by_word(candidates, count, gpus, word, length);
      if (index == kNone || !result.add(index)) break;
      word += length;
      while (*word == ' ') ++word;
      if (*word != ',') break;
    }
  }
  for (size_t i = 0; i < result.count(); ++i) {
    if (candidates[result[i]].gi < 0) continue;
    result.only(result[i]);
    break;
  }
  return result.count();
}

}  // namespace gantry::sim::cuda
