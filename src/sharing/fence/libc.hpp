// SPDX-License-Identifier: Apache-2.0
// The functions of libdl and libpthread moved into libc with glibc 2.34 and got a new symbol
// version. The old versions still work: libc provides them now, and before 2.34 the libraries that
// the driver itself needs did. Include this header wherever these functions are called.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver pthread_create,pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_detach,pthread_detach@GLIBC_2.2.5");
__asm__(".symver pthread_sigmask,pthread_sigmask@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver pthread_create,pthread_create@GLIBC_2.17");
__asm__(".symver pthread_detach,pthread_detach@GLIBC_2.17");
__asm__(".symver pthread_sigmask,pthread_sigmask@GLIBC_2.17");
#endif

namespace gantry::fence {

// glibc had no symbol fstat before 2.33. On 64-bit machines the kernel's structure is the same as
// libc's.
inline bool file_status(int fd, struct stat& status) {
  return syscall(SYS_fstat, fd, &status) == 0;
}

}  // namespace gantry::fence
