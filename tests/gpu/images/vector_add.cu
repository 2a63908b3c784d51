// SPDX-License-Identifier: Apache-2.0
// The program of deploy/images with the CUDA runtime API and a kernel that nvcc compiles.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kElements = 50000;
constexpr int kThreads = 256;
constexpr std::size_t kBytes = kElements * sizeof(float);

__global__ void add(const float* a, const float* b, float* sums, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) sums[index] = a[index] + b[index];
}

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "vector-add: %s: %s\n", call, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

float* on_gpu(const std::vector<float>& values) {
  float* pointer = nullptr;
  CHECK(cudaMalloc(&pointer, kBytes));
  CHECK(cudaMemcpy(pointer, values.data(), kBytes, cudaMemcpyHostToDevice));
  return pointer;
}

}  // namespace

int main() {
  cudaDeviceProp device{};
  CHECK(cudaGetDeviceProperties(&device, 0));
  std::printf("[Vector addition of %d elements on %s]\n", kElements, device.name);
  std::vector<float> a(kElements);
  std::vector<float> b(kElements);
  std::vector<float> sums(kElements);
  for (int i = 0; i < kElements; ++i) {
    a[i] = static_cast<float>(i) / kElements;
    b[i] = 1.0F - a[i];
  }
  float* result = on_gpu(sums);
  add<<<(kElements + kThreads - 1) / kThreads, kThreads>>>(on_gpu(a), on_gpu(b), result, kElements);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), result, kBytes, cudaMemcpyDeviceToHost));
  for (const float sum : sums) {
    if (std::fabs(sum - 1.0F) <= 1e-5F) continue;
    std::printf("Test FAILED\n");
    return 1;
  }
  std::printf("Test PASSED\n");
  return 0;
}
