// SPDX-License-Identifier: Apache-2.0
// A loop of calls for callgrind to count, through the fence or at the driver itself:
//   fence_instructions fence|driver alloc|small|async|launch|limited-launch
#include "fence/share_under_test.hpp"

#include <cstdio>
#include <string>

namespace {

using namespace gantry::fence::test;

constexpr int kTimes = 1000;
constexpr const char* kEmptyPtx =
    ".version 3.0\n.target sm_30\n.address_size 64\n.visible .entry empty()\n{ ret; }\n";

bool call(const CudaLibrary& cuda, const std::string& what, CUfunction kernel) {
  CUdeviceptr pointer = 0;
  if (what == "alloc" || what == "small")
    return cuda.cuMemAlloc_v2(&pointer, what == "alloc" ? 64 * kMiB : 512) == CUDA_SUCCESS &&
           cuda.cuMemFree_v2(pointer) == CUDA_SUCCESS;
  if (what == "async")
    return cuda.cuMemAllocAsync(&pointer, kMiB, nullptr) == CUDA_SUCCESS &&
           cuda.cuMemFreeAsync(pointer, nullptr) == CUDA_SUCCESS;
  return cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
         CUDA_SUCCESS;
}

}  // namespace

// callgrind gets this function's name.
extern "C" [[gnu::noinline]] int measured(const CudaLibrary& cuda, const std::string& what,
                                          CUfunction kernel) {
  int good = 0;
  for (int i = 0; i < kTimes; ++i) good += call(cuda, what, kernel) ? 1 : 0;
  return good;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[2];
  ShareUnderTest share({.memory_limit = 8192 * kMiB,
                        .queue_ns = 2'000'000,
                        .flags = what == "limited-launch" ? unsigned{FENCE_TIME_LIMITED} : 0U});
  const CudaLibrary cuda(std::string(argv[1]) == "fence" ? share.fence() : share.driver());
  const CUfunction kernel = gantry::sim::cuda::ready(cuda, "empty", kEmptyPtx);
  if (!call(cuda, what, kernel)) return 1;  // the first one of a kind is not counted
  const int good = measured(cuda, what, kernel);
  std::printf("%s %s: %d of %d\n", argv[1], argv[2], good, kTimes);
  return good == kTimes ? 0 : 1;
}
