// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/usage.h"

#include "sim/driver/file_lock_internal.hpp"
#include "sim/driver/usage_internal.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The lock space: slot, field and value are parts of a 63-bit file offset. A field holding the
// value v is a read lock of v + 1 bytes from the field's first byte; a field never fills its span,
// so that the kernel does not merge neighbours into one lock.
//
//   [ slot: 12 bits ][ field: 12 bits ][ value: 39 bits ]
namespace gantry::sim {
namespace {

constexpr unsigned kValueBits = 39;
constexpr unsigned kFieldBits = 12;
constexpr uint64_t kMaxValue = (1ULL << kValueBits) - 2;

// Fields 0 and 1 identify the process; then come its bytes, one field for each GPU and each compute
// instance, and its MPS server.
constexpr uint32_t kPidField = 0;
constexpr uint32_t kNamespaceField = 1;
constexpr uint32_t kFirstUse = 2;
constexpr uint32_t kGpus = 16;
constexpr uint32_t kGis = 16;
constexpr uint32_t kCis = 8;
constexpr uint32_t kUsesPerGpu = 1 + kGis * kCis;
constexpr uint32_t kMpsField = kFirstUse + kGpus * kUsesPerGpu;
static_assert(kMpsField < (1U << kFieldBits));
static_assert(GANTRY_SIM_SLOTS == 1U << (63 - kFieldBits - kValueBits));

uint64_t offset_of(uint32_t slot, uint32_t field) {
  return (static_cast<uint64_t>(slot) << (kFieldBits + kValueBits)) |
         (static_cast<uint64_t>(field) << kValueBits);
}

// 0 if there is no such field: the instance number is larger than on any card.
uint32_t field_of(uint32_t gpu, int32_t gi, int32_t ci) {
  if (gpu >= kGpus) return 0;
  const uint32_t first = kFirstUse + gpu * kUsesPerGpu;
  if (gi < 0) return first;
  if (static_cast<uint32_t>(gi) >= kGis || ci < 0 || static_cast<uint32_t>(ci) >= kCis) return 0;
  return first + 1 + static_cast<uint32_t>(gi) * kCis + static_cast<uint32_t>(ci);
}

bool decode_field(uint32_t field, gantry_sim_use& use) {
  if (field < kFirstUse) return false;
  const uint32_t index = field - kFirstUse;
  use.gpu = index / kUsesPerGpu;
  if (use.gpu >= kGpus) return false;
  const uint32_t instance = index % kUsesPerGpu;
  use.gi_id = instance == 0 ? -1 : static_cast<int32_t>((instance - 1) / kCis);
  use.ci_id = instance == 0 ? -1 : static_cast<int32_t>((instance - 1) % kCis);
  return true;
}

bool set_value(int fd, uint32_t slot, uint32_t field, uint64_t old_length, uint64_t new_length) {
  const uint64_t start = offset_of(slot, field);
  if (new_length > old_length)
    return lock_call(fd, kOfdSetLock, F_RDLCK, start, new_length, nullptr) == 0;
  if (new_length == old_length) return true;
  return lock_call(fd, kOfdSetLock, F_UNLCK, start + new_length, old_length - new_length,
                   nullptr) == 0;
}

struct OffsetRange {
  uint64_t begin, end;
};

// Ranges that are still to be searched.
class PendingRanges {
 public:
  PendingRanges() = default;
  ~PendingRanges() { free(ranges_); }
  PendingRanges(const PendingRanges&) = delete;
  PendingRanges& operator=(const PendingRanges&) = delete;

  void push(OffsetRange range) {
    if (range.begin >= range.end) return;
    if (count_ == capacity_) {
      const size_t wanted = capacity_ == 0 ? 64 : capacity_ * 2;
      void* grown = realloc(ranges_, wanted * sizeof(OffsetRange));
      if (grown == nullptr) return;
      ranges_ = static_cast<OffsetRange*>(grown);
      capacity_ = wanted;
    }
    ranges_[count_++] = range;
  }
  bool pop(OffsetRange& range) {
    if (count_ == 0) return false;
    range = ranges_[--count_];
    return true;
  }

 private:
  OffsetRange* ranges_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
};

// Calls visit(slot, field, value) for every lock that begins in [begin, end). The kernel returns
// one lock of a range, in no useful order; the ranges on both sides of it are searched next. A lock
// that grew during the search is found again with its old beginning, and is counted once.
template <class Visit>
void walk(int fd, uint64_t begin, uint64_t end, Visit& visit) {
  PendingRanges pending;
  pending.push({begin, end});
  OffsetRange range = {};
  while (pending.pop(range)) {
    struct flock found = {};
    if (lock_call(fd, kOfdGetLock, F_WRLCK, range.begin, range.end - range.begin, &found) != 0)
      return;
    if (found.l_type == F_UNLCK || found.l_len <= 0) continue;
    const uint64_t start = static_cast<uint64_t>(found.l_start);
    const uint64_t length = static_cast<uint64_t>(found.l_len);
    if (start >= range.begin) {
      visit(static_cast<uint32_t>(start >> (kFieldBits + kValueBits)),
            static_cast<uint32_t>(start >> kValueBits) & ((1U << kFieldBits) - 1), length - 1);
    }
    pending.push({range.begin, start});
    pending.push({start + length, range.end});
  }
}

constexpr uint64_t kEnd = ~0ULL >> 1U;

class MutexLock {
 public:
  explicit MutexLock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~MutexLock() { pthread_mutex_unlock(&mutex_); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

// Only one process at a time decides whether there is room. The wait is limited, because a stopped
// holder must not block all others.
bool take_turn(int fd) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, nullptr);
  }
  return false;
}

}  // namespace
}  // namespace gantry::sim

using namespace gantry::sim;  // NOLINT: the C functions below stand outside it

struct gantry_sim_usage {
  pthread_mutex_t mutex;
  char* path;
  int look;  // for queries and for the flock; also sees the locks of `hold`
  int hold;  // owns our locks; -1 until something is held
  uint32_t slot;
  uint64_t length[1U << 12];  // of our own locks, by field
};

namespace {

bool open_look(gantry_sim_usage& usage) {
  if (usage.look < 0) usage.look = open(usage.path, O_RDONLY | O_CLOEXEC);
  return usage.look >= 0;
}

void drop_hold(gantry_sim_usage& usage) {
  if (usage.hold >= 0) close(usage.hold);
  usage.hold = -1;
  memset(usage.length, 0, sizeof usage.length);
}

// A slot is free if no process holds its first field.
bool take_slot(gantry_sim_usage& usage) {
  if (usage.hold >= 0) return true;
  usage.hold = open(usage.path, O_RDONLY | O_CLOEXEC);
  if (usage.hold < 0) return false;
  for (uint32_t slot = 0; slot < GANTRY_SIM_SLOTS; ++slot) {
    struct flock found = {};
    const uint64_t start = offset_of(slot, kPidField);
    if (lock_call(usage.look, kOfdGetLock, F_WRLCK, start, 2ULL << kValueBits, &found) != 0) break;
    if (found.l_type != F_UNLCK) continue;
    usage.slot = slot;
    const uint64_t pid = static_cast<uint64_t>(getpid());
    const uint64_t space = own_pid_namespace();
    if (!set_value(usage.hold, slot, kNamespaceField, 0, space + 1)) break;
    if (!set_value(usage.hold, slot, kPidField, 0, pid + 1)) break;
    usage.length[kPidField] = pid + 1;
    usage.length[kNamespaceField] = space + 1;
    return true;
  }
  drop_hold(usage);
  return false;
}

uint64_t sum(gantry_sim_usage& usage, uint32_t gpu, int32_t gi, int32_t ci) {
  uint64_t total = 0;
  auto visit = [&](uint32_t, uint32_t field, uint64_t value) {
    gantry_sim_use use = {};
    if (!decode_field(field, use) || use.gpu != gpu) return;
    if (gi >= 0 && use.gi_id != gi) return;
    if (gi >= 0 && ci >= 0 && use.ci_id != ci) return;
    total += value;
  };
  walk(usage.look, 0, kEnd, visit);
  return total;
}

int join(gantry_sim_usage& usage, uint32_t mps_server) {
  uint64_t& length = usage.length[kMpsField];
  const uint64_t wanted = static_cast<uint64_t>(mps_server) + 1;
  if (!set_value(usage.hold, usage.slot, kMpsField, length, wanted)) return -1;
  length = wanted;
  return 0;
}

int add_in_turn(gantry_sim_usage& usage, uint32_t gpu, int32_t gi, uint32_t field, uint64_t bytes,
                uint64_t limit) {
  // Compute instances share the memory of their GPU instance.
  const uint64_t total = sum(usage, gpu, gi, -1);
  if (bytes > limit || total > limit - bytes) return -1;
  if (!take_slot(usage)) return -2;
  uint64_t& length = usage.length[field];
  const uint64_t held = length == 0 ? 0 : length - 1;
  if (bytes > kMaxValue || held > kMaxValue - bytes) return -1;
  if (!set_value(usage.hold, usage.slot, field, length, held + bytes + 1)) return -2;
  length = held + bytes + 1;
  return 0;
}

}  // namespace

extern "C" {

struct gantry_sim_usage* gantry_sim_usage_open(const char* libcuda_file) {
  auto* usage = static_cast<gantry_sim_usage*>(calloc(1, sizeof(gantry_sim_usage)));
  if (usage == nullptr) return nullptr;
  pthread_mutex_init(&usage->mutex, nullptr);
  usage->look = -1;
  usage->hold = -1;
  usage->path = strdup(libcuda_file);
  if (usage->path != nullptr && open_look(*usage)) return usage;
  gantry_sim_usage_close(usage);
  return nullptr;
}

void gantry_sim_usage_close(struct gantry_sim_usage* usage) {
  if (usage == nullptr) return;
  if (usage->hold >= 0) close(usage->hold);
  if (usage->look >= 0) close(usage->look);
  free(usage->path);
  free(usage);
}

// The locks belong to the open file, which parent and child share: closing our copy does not
// release them.
void gantry_sim_usage_after_fork(struct gantry_sim_usage* usage) {
  if (usage == nullptr) return;
  pthread_mutex_init(&usage->mutex, nullptr);
  drop_hold(*usage);
  if (usage->look >= 0) close(usage->look);
  usage->look = -1;
}

int gantry_sim_usage_add(struct gantry_sim_usage* usage, uint32_t gpu, int32_t gi_id, int32_t ci_id,
                         uint64_t bytes, uint64_t limit) {
  const uint32_t field = field_of(gpu, gi_id, ci_id);
  if (usage == nullptr || field == 0) return -2;
  const MutexLock locked(usage->mutex);
  if (!open_look(*usage) || !take_turn(usage->look)) return -2;
  const int result = add_in_turn(*usage, gpu, gi_id, field, bytes, limit);
  flock(usage->look, LOCK_UN);
  return result;
}

void gantry_sim_usage_sub(struct gantry_sim_usage* usage, uint32_t gpu, int32_t gi_id,
                          int32_t ci_id, uint64_t bytes) {
  const uint32_t field = field_of(gpu, gi_id, ci_id);
  if (usage == nullptr || field == 0) return;
  const MutexLock locked(usage->mutex);
  if (usage->hold < 0 || usage->length[field] == 0) return;
  const uint64_t held = usage->length[field] - 1;
  const uint64_t left = bytes >= held ? 0 : held - bytes + 1;
  if (set_value(usage->hold, usage->slot, field, usage->length[field], left))
    usage->length[field] = left;
}

uint64_t gantry_sim_usage_total(struct gantry_sim_usage* usage, uint32_t gpu, int32_t gi_id,
                                int32_t ci_id) {
  if (usage == nullptr) return 0;
  const MutexLock locked(usage->mutex);
  return open_look(*usage) ? sum(*usage, gpu, gi_id, ci_id) : 0;
}

uint32_t gantry_sim_usage_serve(struct gantry_sim_usage* usage) {
  if (usage == nullptr) return 0;
  const MutexLock locked(usage->mutex);
  if (!open_look(*usage) || !take_turn(usage->look)) return 0;
  const bool taken = take_slot(*usage);
  flock(usage->look, LOCK_UN);
  return taken && join(*usage, usage->slot + 1) == 0 ? usage->slot + 1 : 0;
}

int gantry_sim_usage_join(struct gantry_sim_usage* usage, uint32_t mps_server) {
  if (usage == nullptr) return -1;
  const MutexLock locked(usage->mutex);
  if (!open_look(*usage) || !take_turn(usage->look)) return -1;
  const bool taken = take_slot(*usage);
  flock(usage->look, LOCK_UN);
  return taken ? join(*usage, mps_server) : -1;
}

size_t gantry_sim_usage_list(struct gantry_sim_usage* usage, uint32_t gpu,
                             struct gantry_sim_use* rows, size_t capacity) {
  if (usage == nullptr) return 0;
  const MutexLock locked(usage->mutex);
  if (!open_look(*usage)) return 0;
  size_t count = 0;
  auto visit = [&](uint32_t slot, uint32_t field, uint64_t value) {
    gantry_sim_use use = {};
    if (!decode_field(field, use) || use.gpu != gpu) return;
    use.slot = slot;
    use.bytes = value;
    if (count < capacity) rows[count] = use;
    ++count;
  };
  walk(usage->look, 0, kEnd, visit);
  for (size_t i = 0; i < count && i < capacity; ++i) {
    uint64_t pid = 0;
    uint64_t space = 0;
    auto who = [&](uint32_t, uint32_t field, uint64_t value) {
      if (field == kPidField) pid = value;
      if (field == kNamespaceField) space = value;
      if (field == kMpsField) rows[i].mps_server = static_cast<uint32_t>(value);
    };
    const uint64_t start = offset_of(rows[i].slot, kPidField);
    walk(usage->look, start, start + (2ULL << kValueBits), who);
    const uint64_t mps = offset_of(rows[i].slot, kMpsField);
    walk(usage->look, mps, mps + (1ULL << kValueBits), who);
    rows[i].pid = pid_in_own_namespace(static_cast<int32_t>(pid), space);
  }
  return count;
}

}  // extern "C"
