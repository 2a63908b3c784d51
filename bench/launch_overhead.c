/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures what the fence adds to a kernel launch: one process, one context, the same empty kernel
 * launched through the fence and around it, in rounds that alternate.
 *
 *   cc -O2 -Isrc bench/launch_overhead.c -o launch_overhead -ldl
 *   gantry share run --memory 10GiB --compute 100% -- ./launch_overhead
 *
 * Options: --fenced LIBRARY (libcuda.so.1) --native LIBRARY (/run/gantry/fence/cuda)
 *          --rounds N (41) --launches N (4096, then a synchronisation that is not counted)
 * Prints medians in nanoseconds for each launch: native, fenced, and the difference of the rounds.
 */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): glibc requires this name */
#include "gpu/abi/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char* const kPtx =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry empty()\n{ ret; }\n";

enum { kMostRounds = 1001 };

struct options {
  const char* fenced;
  const char* native;
  int rounds;
  int launches;
};

struct library {
  void* handle;
  CUresult (*launch)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
                     unsigned int, unsigned int, unsigned int, CUstream, void**, void**);
  CUresult (*synchronize)(void);
};

static void fail(const char* what, const char* why) {
  fprintf(stderr, "launch_overhead: %s: %s\n", what, why);
  exit(1);
}

static void* symbol(void* handle, const char* name) {
  void* found = dlsym(handle, name);
  if (found == NULL) fail(name, "not in this library");
  return found;
}

static void check(CUresult result, const char* what) {
  char text[32];
  if (result == CUDA_SUCCESS) return;
  snprintf(text, sizeof text, "CUDA error %d", (int)result);
  fail(what, text);
}

static struct library load(const char* file) {
  struct library made = {dlopen(file, RTLD_NOW | RTLD_LOCAL), NULL, NULL};
  if (made.handle == NULL) fail(file, dlerror());
  *(void**)&made.launch = symbol(made.handle, "cuLaunchKernel");
  *(void**)&made.synchronize = symbol(made.handle, "cuCtxSynchronize");
  return made;
}

static CUfunction kernel(const struct library* cuda) {
  CUresult (*init)(unsigned int);
  CUresult (*create)(CUcontext*, unsigned int, CUdevice);
  CUresult (*module_load)(CUmodule*, const void*);
  CUresult (*function)(CUfunction*, CUmodule, const char*);
  *(void**)&init = symbol(cuda->handle, "cuInit");
  *(void**)&create = symbol(cuda->handle, "cuCtxCreate_v2");
  *(void**)&module_load = symbol(cuda->handle, "cuModuleLoadData");
  *(void**)&function = symbol(cuda->handle, "cuModuleGetFunction");
  CUcontext context = NULL;
  CUmodule module = NULL;
  CUfunction made = NULL;
  check(init(0), "cuInit");
  check(create(&context, 0, 0), "cuCtxCreate");
  check(module_load(&module, kPtx), "cuModuleLoadData");
  check(function(&made, module, "empty"), "cuModuleGetFunction");
  return made;
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double one_round(const struct library* cuda, CUfunction function, int launches) {
  const double start = now_ns();
  for (int i = 0; i < launches; ++i) {
    const CUresult result = cuda->launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    if (result != CUDA_SUCCESS) check(result, "cuLaunchKernel");
  }
  const double end = now_ns();
  check(cuda->synchronize(), "cuCtxSynchronize");
  return (end - start) / launches;
}

static int compare(const void* left, const void* right) {
  const double one = *(const double*)left;
  const double other = *(const double*)right;
  return one < other ? -1 : one > other;
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

static struct options parse(int argc, char** argv) {
  struct options chosen = {"libcuda.so.1", "/run/gantry/fence/cuda", 41, 4096};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--fenced") == 0)
      chosen.fenced = argv[i + 1];
    else if (strcmp(argv[i], "--native") == 0)
      chosen.native = argv[i + 1];
    else if (strcmp(argv[i], "--rounds") == 0)
      chosen.rounds = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--launches") == 0)
      chosen.launches = atoi(argv[i + 1]);
    else
      fail(argv[i], "unknown option; the first lines of bench/launch_overhead.c name them");
  }
  if (chosen.rounds < 1 || chosen.rounds > kMostRounds || chosen.launches < 1)
    fail("--rounds, --launches", "out of range");
  return chosen;
}

int main(int argc, char** argv) {
  static double native_ns[kMostRounds];
  static double fenced_ns[kMostRounds];
  static double added_ns[kMostRounds];
  const struct options chosen = parse(argc, argv);
  const struct library fenced = load(chosen.fenced);
  const struct library native = load(chosen.native);
  const CUfunction function = kernel(&fenced);
  for (int i = 0; i < 3; ++i) { /* warm-up */
    one_round(&native, function, chosen.launches);
    one_round(&fenced, function, chosen.launches);
  }
  for (int i = 0; i < chosen.rounds; ++i) {
    const int native_first = i % 2;
    if (native_first) native_ns[i] = one_round(&native, function, chosen.launches);
    fenced_ns[i] = one_round(&fenced, function, chosen.launches);
    if (!native_first) native_ns[i] = one_round(&native, function, chosen.launches);
    added_ns[i] = fenced_ns[i] - native_ns[i];
  }
  printf(
      "{\"native_ns\": %.1f, \"fenced_ns\": %.1f, \"added_ns\": %.1f, \"rounds\": %d, "
      "\"launches\": %d}\n",
      median(native_ns, chosen.rounds), median(fenced_ns, chosen.rounds),
      median(added_ns, chosen.rounds), chosen.rounds, chosen.launches);
  return 0;
}
