// SPDX-License-Identifier: Apache-2.0
// Linked into every program. The static libstdc++ names arc4random and the static expat
// arc4random_buf, which glibc has since 2.36 only; with our own a program starts on any glibc from
// the floor on.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (::syscall(SYS_getrandom, &value, sizeof value, 0) != static_cast<long>(sizeof value))
    std::abort();
  return value;
}

extern "C" void arc4random_buf(void* into, std::size_t size) noexcept {
  auto* bytes = static_cast<unsigned char*>(into);
  while (size > 0) {
    const auto got = ::syscall(SYS_getrandom, bytes, size, 0);
    if (got <= 0) std::abort();
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
}
