/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that opens libraries: probe NAME... prints for each name the files that provide
 * cuMemAlloc_v2 and cuDeviceGetCount. "?NAME": only if it is already loaded, "=": the global scope.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char* file_of(void* handle, const char* symbol) {
  Dl_info info;
  void* address = dlsym(handle, symbol);
  return address != NULL && dladdr(address, &info) != 0 ? info.dli_fname : "nothing";
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const char* name = argv[i];
    int flags = RTLD_NOW | RTLD_GLOBAL;
    void* handle = RTLD_DEFAULT;
    if (*name == '?') {
      flags |= RTLD_NOLOAD;
      ++name;
    }
    if (strcmp(name, "=") != 0) {
      handle = dlopen(name, flags);
      if (handle == NULL) {
        puts("nothing nothing");
        continue;
      }
    }
    printf("%s %s\n", file_of(handle, "cuMemAlloc_v2"), file_of(handle, "cuDeviceGetCount"));
  }
  return 0;
}
