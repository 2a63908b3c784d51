// SPDX-License-Identifier: Apache-2.0
// any_runtime LIBRARY: a CUDA runtime of any version, by its path: what it sees of the GPU, what it
// gets until it is refused, with which error. One line of JSON.
#include "said.hpp"

#include <dlfcn.h>

#include <vector>

namespace {

void* runtime = nullptr;

template <class... Values>
int call(const char* name, Values... values) {
  const auto function = reinterpret_cast<int (*)(Values...)>(dlsym(runtime, name));
  return function == nullptr ? -1 : function(values...);
}

template <class Take>
int refused(Take take, std::vector<void*>& taken) {
  int error = 0;
  for (std::size_t piece = 256 << 20; piece >= (2 << 20); piece /= 2) {
    void* pointer = nullptr;
    while ((error = take(&pointer, piece)) == 0) taken.push_back(pointer);
  }
  return error;
}

}  // namespace

int main(int count, char** words) {
  runtime = count > 1 ? dlopen(words[1], RTLD_NOW) : nullptr;
  if (runtime == nullptr) return 2;
  int version = 0;
  std::size_t left = 0;
  std::size_t total = 0;
  MUST(call("cudaRuntimeGetVersion", &version));
  std::vector<void*> taken;
  const int error =
      refused([](void** p, std::size_t n) { return call("cudaMalloc", p, n); }, taken);
  MUST(call("cudaMemGetInfo", &left, &total));
  for (void* p : taken) MUST(call("cudaFree", p));
  taken.clear();
  void* stream = nullptr;
  MUST(call("cudaStreamCreate", &stream));
  const int async_error = refused(
      [&](void** p, std::size_t n) { return call("cudaMallocAsync", p, n, stream); }, taken);
  for (void* p : taken) MUST(call("cudaFreeAsync", p, stream));
  MUST(call("cudaStreamSynchronize", stream));
  say("{\"version\": %d, \"error\": %d, \"async_error\": %d, \"free\": %zu, \"total\": %zu}",
      version, error, async_error, left, total);
  return 0;
}
