// SPDX-License-Identifier: Apache-2.0

#include "sim/driver/library_internal.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace gantry::sim {

void Lock::lock() {
  int32_t seen = 0;
  if (__atomic_compare_exchange_n(&word_, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return;
  }
  if (seen != 2) seen = __atomic_exchange_n(&word_, 2, __ATOMIC_ACQUIRE);
  while (seen != 0) {
    syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
    seen = __atomic_exchange_n(&word_, 2, __ATOMIC_ACQUIRE);
  }
}

void Lock::unlock() {
  if (__atomic_exchange_n(&word_, 0, __ATOMIC_RELEASE) == 2) {
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

ssize_t read_small_file(const char* path, char* buffer, size_t capacity) {
  // O_NONBLOCK: a FIFO in its place must not make the program wait.
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  size_t used = 0;
  while (used + 1 < capacity) {
    const ssize_t got = read(fd, buffer + used, capacity - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  close(fd);
  buffer[used] = '\0';
  return static_cast<ssize_t>(used);
}

void sleep_us(uint64_t microseconds) {
  timespec left{};
  left.tv_sec = static_cast<time_t>(microseconds / 1000000);
  left.tv_nsec = static_cast<long>(microseconds % 1000000) * 1000;
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

uint64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace gantry::sim
