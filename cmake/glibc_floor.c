/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into programs that load NVIDIA's libraries and so need glibc as a shared library. Debian's
 * start files, libstdc++.a and libgcc_eh.a name symbols that only later versions of glibc have.
 * Here they are defined by what glibc 2.17 has, so that one build starts on every glibc from there
 * on (tools/check_glibc_floor.py). The definitions are hidden: the libraries that the program loads
 * keep glibc's own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define OLDEST_FSTATAT "GLIBC_2.4"
enum { kStatVersion = 1 };
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#define OLDEST_FSTATAT OLDEST
enum { kStatVersion = 0 };
#else
#error "which version of glibc was the first one for this processor?"
#endif

#pragma GCC visibility push(hidden)

/* Declares old_NAME: the function NAME of the first glibc. */
#define OLD(type, name) OLD_OF(OLDEST, type, name)
#define OLD_OF(version, type, name)                    \
  __asm__(".symver old_" #name "," #name "@" version); \
  extern __attribute__((visibility("default"))) type old_##name
/* Defines NAME, which got a new version when glibc joined libpthread and libdl with libc. */
#define STANDS_IN(result, name, parameters, arguments) \
  OLD(__typeof__(name), name);                         \
  result name parameters {                             \
    return old_##name arguments;                       \
  }

STANDS_IN(int, dladdr, (const void* address, Dl_info* info), (address, info))
STANDS_IN(int, dlclose, (void* handle), (handle))
STANDS_IN(char*, dlerror, (void), ())
STANDS_IN(void*, dlopen, (const char* file, int mode), (file, mode))
STANDS_IN(void*, dlsym, (void* restrict handle, const char* restrict name), (handle, name))
STANDS_IN(int, pthread_create,
          (pthread_t* restrict thread, const pthread_attr_t* restrict attributes,
           void* (*run)(void*), void* restrict argument),
          (thread, attributes, run, argument))
STANDS_IN(int, pthread_detach, (pthread_t thread), (thread))
STANDS_IN(int, pthread_join, (pthread_t thread, void** result), (thread, result))
STANDS_IN(void*, pthread_getspecific, (pthread_key_t key), (key))
STANDS_IN(int, pthread_setspecific, (pthread_key_t key, const void* value), (key, value))
STANDS_IN(int, pthread_key_create, (pthread_key_t * key, void (*destroy)(void*)), (key, destroy))
/* libstdc++ only asks whether it exists. */
int __pthread_key_create(pthread_key_t* key, void (*destroy)(void*));
int __pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return pthread_key_create(key, destroy);
}
STANDS_IN(int, pthread_key_delete, (pthread_key_t key), (key))
STANDS_IN(int, pthread_once, (pthread_once_t * once, void (*run)(void)), (once, run))
STANDS_IN(int, pthread_rwlock_destroy, (pthread_rwlock_t * lock), (lock))
STANDS_IN(int, pthread_rwlock_init,
          (pthread_rwlock_t* restrict lock, const pthread_rwlockattr_t* restrict attributes),
          (lock, attributes))
STANDS_IN(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
STANDS_IN(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
STANDS_IN(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
STANDS_IN(int, pthread_sigmask, (int how, const sigset_t* restrict set, sigset_t* restrict before),
          (how, set, before))
STANDS_IN(double, exp, (double x), (x))

/* Before 2.33 these were inline functions of the headers. */
typedef int stat_at(int version, const char* path, struct stat* found);
typedef int stat_of(int version, int fd, struct stat* found);
OLD(stat_at, __xstat);
OLD(stat_at, __lxstat);
OLD(stat_of, __fxstat);
typedef int stat_below(int version, int fd, const char* path, struct stat* found, int flags);
OLD_OF(OLDEST_FSTATAT, stat_below, __fxstatat);

int stat(const char* restrict path, struct stat* restrict found) {
  return old___xstat(kStatVersion, path, found);
}
int lstat(const char* restrict path, struct stat* restrict found) {
  return old___lxstat(kStatVersion, path, found);
}
int fstat(int fd, struct stat* found) {
  return old___fxstat(kStatVersion, fd, found);
}
int fstatat(int fd, const char* restrict path, struct stat* restrict found, int flags) {
  return old___fxstatat(kStatVersion, fd, path, found, flags);
}
/* struct stat64 is struct stat where long has 64 bits. */
int fstat64(int fd, struct stat64* found) {
  return old___fxstat(kStatVersion, fd, (struct stat*)found);
}

/* Since 2.28 and 2.30. */
int statx(int fd, const char* restrict path, int flags, unsigned mask,
          struct statx* restrict found) {
  return (int)syscall(SYS_statx, fd, path, flags, mask, found);
}
ssize_t getdents64(int fd, void* entries, size_t size) {
  return syscall(SYS_getdents64, fd, entries, size);
}

/* Since 2.36, 2.36 and 2.25. */
void arc4random_buf(void* into, size_t size) {
  unsigned char* bytes = into;
  while (size > 0) {
    const long got = syscall(SYS_getrandom, bytes, size, 0);
    if (got <= 0 && errno != EINTR) abort();
    if (got <= 0) continue;
    bytes += got;
    size -= (size_t)got;
  }
}
uint32_t arc4random(void) {
  uint32_t value;
  arc4random_buf(&value, sizeof value);
  return value;
}
int getentropy(void* into, size_t size) {
  if (size > 256) {
    errno = EIO;
    return -1;
  }
  arc4random_buf(into, size);
  return 0;
}

/* Since 2.32. libstdc++ leaves out atomic operations while it is true. */
char __libc_single_threaded = 0;

/* Since 2.35. libgcc finds the tables for exceptions with it. */
struct search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look_into(struct dl_phdr_info* info, size_t size, void* argument) {
  (void)size;
  const struct search* search = argument;
  const ElfW(Phdr)* tables = NULL, *segment = NULL;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) tables = header;
    if (header->p_type == PT_LOAD && search->address - start < header->p_memsz) segment = header;
  }
  if (tables == NULL || segment == NULL) return 0;
  search->found->dlfo_map_start = (void*)(info->dlpi_addr + segment->p_vaddr);
  search->found->dlfo_map_end = (char*)search->found->dlfo_map_start + segment->p_memsz;
  search->found->dlfo_eh_frame = (void*)(info->dlpi_addr + tables->p_vaddr);
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  const struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look_into, (void*)&search) == 1 ? 0 : -1;
}

/* The start file of glibc 2.34 and later leaves it to __libc_start_main to run the constructors.
 * The first version of that function runs what it is given, in every glibc.
 */
typedef int start_main(int (*main)(int, char**, char**), int argc, char** argv,
                       int (*init)(int, char**, char**), void (*fini)(void),
                       void (*loader_fini)(void), void* stack_end);
OLD(start_main, __libc_start_main);

typedef void constructor(int argc, char** argv, char** environment);
extern constructor *__preinit_array_start[], *__preinit_array_end[];
extern constructor *__init_array_start[], *__init_array_end[];
void _init(void);

static int run_constructors(int argc, char** argv, char** environment) {
  for (constructor** run = __preinit_array_start; run != __preinit_array_end; ++run)
    (*run)(argc, argv, environment);
  _init();
  for (constructor** run = __init_array_start; run != __init_array_end; ++run)
    (*run)(argc, argv, environment);
  return 0;
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                      int (*init)(int, char**, char**), void (*fini)(void),
                      void (*loader_fini)(void), void* stack_end) {
  (void)init;
  (void)fini;
  return old___libc_start_main(main, argc, argv, run_constructors, NULL, loader_fini, stack_end);
}

#pragma GCC visibility pop
