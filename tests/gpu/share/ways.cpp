// SPDX-License-Identifier: Apache-2.0
// ways NAME...: the memory that a GPU has, asked through each library that dlopen finds by these
// names ("noload:" before one: only if it is loaded already), by dlsym and by cuGetProcAddress of
// both kinds for every CUDA version. The fence holds if all answers are equal.
#include "said.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace {

using Init = int (*)(unsigned);
using Total = int (*)(std::size_t*, int);
using Ask1 = int (*)(const char*, void**, int, std::uint64_t);
using Ask2 = int (*)(const char*, void**, int, std::uint64_t, void*);

void tell(const char* name, const char* file, const char* way, int version, void* total) {
  std::size_t bytes = 0;
  const int result = total == nullptr ? -1 : reinterpret_cast<Total>(total)(&bytes, 0);
  say("{\"name\": \"%s\", \"file\": \"%s\", \"way\": \"%s\", \"version\": %d, \"result\": %d, "
      "\"total\": %zu}",
      name, file, way, version, result, bytes);
}

void ask(const char* name, const char* file, void* library) {
  auto init = reinterpret_cast<Init>(dlsym(library, "cuInit"));
  if (init == nullptr || init(0) != 0) {
    say("{\"name\": \"%s\", \"failed\": \"cuInit\"}", name);
    return;
  }
  tell(name, file, "dlsym", 0, dlsym(library, "cuDeviceTotalMem_v2"));
  auto ask1 = reinterpret_cast<Ask1>(dlsym(library, "cuGetProcAddress"));
  auto ask2 = reinterpret_cast<Ask2>(dlsym(library, "cuGetProcAddress_v2"));
  for (const int version : {11080, 12000, 12040, 12080, 13000}) {
    for (const std::uint64_t flags : {0, 1, 2}) {
      void* total = nullptr;
      ask1("cuDeviceTotalMem", &total, version, flags);
      tell(name, file, "v1", version, total);
      total = nullptr;
      ask2("cuDeviceTotalMem", &total, version, flags, nullptr);
      tell(name, file, "v2", version, total);
      // As a runtime does: gets cuGetProcAddress, then uses it for the lookup.
      void* again = nullptr;
      ask2("cuGetProcAddress", &again, version, flags, nullptr);
      total = nullptr;
      if (again != nullptr && version >= 12000) {
        reinterpret_cast<Ask2>(again)("cuDeviceTotalMem", &total, version, flags, nullptr);
      } else if (again != nullptr) {
        reinterpret_cast<Ask1>(again)("cuDeviceTotalMem", &total, version, flags);
      }
      tell(name, file, "asked twice", version, total);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const bool there = strncmp(words[i], "noload:", 7) == 0;
    void* library = dlopen(there ? words[i] + 7 : words[i], RTLD_NOW | (there ? RTLD_NOLOAD : 0));
    if (library == nullptr) {
      say("{\"name\": \"%s\", \"absent\": true}", words[i]);
      continue;
    }
    link_map* map = nullptr;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    ask(words[i], map->l_name, library);
  }
  return 0;
}
