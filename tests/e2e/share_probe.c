// SPDX-License-Identifier: Apache-2.0
// What a program of a share sees and may have: libcuda by the name it is given (libcuda.so.1 unless
// told), then one line each. share_probe [--library NAME] [--hold SECONDS] MIB...
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

typedef int (*Init)(unsigned);
typedef int (*Count)(int*);
typedef int (*Retain)(void**, int);
typedef int (*SetCurrent)(void*);
typedef int (*Info)(size_t*, size_t*);
typedef int (*Alloc)(uint64_t*, size_t);

static void* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) {
    printf("no %s\n", name);
    exit(2);
  }
  return found;
}

int main(int argc, char** argv) {
  const char* name = "libcuda.so.1";
  unsigned hold = 0;
  int at = 1;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
    if (strcmp(argv[at], "--library") == 0) name = argv[at + 1];
    if (strcmp(argv[at], "--hold") == 0) hold = (unsigned)atoi(argv[at + 1]);
  }
  printf("secure %lu\n", getauxval(AT_SECURE));
  void* library = dlopen(name, RTLD_NOW);
  if (library == NULL) {
    printf("dlopen: %s\n", dlerror());
    return 2;
  }
  const int init = ((Init)find(library, "cuInit"))(0);
  printf("cuInit %d\n", init);
  if (init != 0) return 1;
  int count = 0;
  ((Count)find(library, "cuDeviceGetCount"))(&count);
  printf("devices %d\n", count);
  void* context = NULL;
  const int made = ((Retain)find(library, "cuDevicePrimaryCtxRetain"))(&context, 0);
  printf("context %d\n", made);
  if (made != 0) return 1;
  ((SetCurrent)find(library, "cuCtxSetCurrent"))(context);
  size_t unused = 0, total = 0;
  ((Info)find(library, "cuMemGetInfo_v2"))(&unused, &total);
  printf("total %zu\n", total >> 20);
  for (; at < argc; ++at) {
    uint64_t memory = 0;
    const int result = ((Alloc)find(library, "cuMemAlloc_v2"))(&memory, (size_t)atoll(argv[at]) << 20);
    printf("alloc %s %d\n", argv[at], result);
  }
  if (hold > 0) printf("holding\n");
  sleep(hold);
  return 0;
}
