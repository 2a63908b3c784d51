// SPDX-License-Identifier: Apache-2.0
// Linked into every program. The static libstdc++ names arc4random, which glibc has since 2.36
// only; with one of our own a program starts on any glibc from the floor on.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (::syscall(SYS_getrandom, &value, sizeof value, 0) != static_cast<long>(sizeof value))
    std::abort();
  return value;
}
