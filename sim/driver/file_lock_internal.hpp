// SPDX-License-Identifier: Apache-2.0
// Locks of parts of a file that belong to the open file and not to the process.
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gantry::sim {

constexpr int kOfdGetLock = 36;  // F_OFD_GETLK and F_OFD_SETLK, which old libc headers lack
constexpr int kOfdSetLock = 37;

// Returns the result of fcntl; `out` gets the lock that it found.
inline long lock_call(int fd, int command, short type, uint64_t start, uint64_t length,
                      struct flock* out = nullptr) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(start);
  lock.l_len = static_cast<off_t>(length);
  const long result = syscall(SYS_fcntl, fd, command, &lock);
  if (out != nullptr) *out = lock;
  return result;
}

}  // namespace gantry::sim
