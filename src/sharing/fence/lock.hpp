// SPDX-License-Identifier: Apache-2.0
// A lock of one word, without a constructor and without libpthread. Hold it only briefly: never
// during a call of the dynamic linker, the host or (except in pools.cpp) the driver.
#pragma once

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace gantry::fence {

// Waits while *word is `value`, at most this long. May return early without a reason.
inline void futex_wait(const uint32_t* word, uint32_t value, int scope, uint64_t nanoseconds) {
  const timespec most = {static_cast<time_t>(nanoseconds / 1000000000U),
                         static_cast<long>(nanoseconds % 1000000000U)};
  syscall(SYS_futex, word, FUTEX_WAIT | scope, value, nanoseconds == 0 ? nullptr : &most, nullptr,
          0);
}
inline void futex_wake(uint32_t* word, int scope, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE | scope, count, nullptr, nullptr, 0);
}
// The scope of a futex.
inline constexpr int kWithinProcess = FUTEX_PRIVATE_FLAG;
inline constexpr int kAcrossProcesses = 0;

class Lock {
 public:
  void lock() {
    uint32_t free = 0;
    if (__atomic_compare_exchange_n(&word_, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return;
    while (__atomic_exchange_n(&word_, 2, __ATOMIC_ACQUIRE) != 0)
      futex_wait(&word_, 2, kWithinProcess, 0);
  }
  bool try_lock() {
    uint32_t free = 0;
    return __atomic_compare_exchange_n(&word_, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
  }
  void unlock() {
    if (__atomic_exchange_n(&word_, 0, __ATOMIC_RELEASE) == 2)
      futex_wake(&word_, kWithinProcess, 1);
  }
  // Call this in the child of a fork, where the thread that held it does not exist.
  void reset() { word_ = 0; }

 private:
  uint32_t word_ = 0;  // 0 free, 1 held, 2 held with waiting threads
};

class Guard {
 public:
  explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

inline uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000U + static_cast<uint64_t>(now.tv_nsec);
}

// Call this in a loop that polls memory.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("" ::: "memory");
#endif
}

// Uses the system call, because nanosleep() is a cancellation point.
inline void sleep_for_ns(uint64_t nanoseconds) {
  const timespec time = {static_cast<time_t>(nanoseconds / 1000000000U),
                         static_cast<long>(nanoseconds % 1000000000U)};
  syscall(SYS_nanosleep, &time, nullptr);
}

}  // namespace gantry::fence
