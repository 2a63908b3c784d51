// SPDX-License-Identifier: Apache-2.0
// An ordinary CUDA program: the runtime, kernels with <<<>>>, a captured graph. Built with the
// static and the shared runtime and with a default stream per thread. One line of JSON.
#include "said.hpp"

#include <cuda_runtime.h>

#include <thread>
#include <vector>

namespace {

constexpr int kCount = 1 << 20;

__global__ void add_index(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += i;
}

// One launch on the default stream (the thread's own, where built so), then `graph` launches of a
// captured one: each adds the index once.
int add_times(int graph_launches) {
  int* values = nullptr;
  int value = 0;
  MUST(cudaMalloc(&values, kCount * sizeof(int)));
  MUST(cudaMemset(values, 0, kCount * sizeof(int)));
  // Not the whole device: that must not be waited for while another thread captures.
  MUST(cudaStreamSynchronize(nullptr));
  add_index<<<kCount / 256, 256>>>(values, kCount);
  MUST(cudaGetLastError());
  MUST(cudaStreamSynchronize(nullptr));
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add_index<<<kCount / 256, 256, 0, stream>>>(values, kCount);
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < graph_launches; ++i) MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaMemcpy(&value, values + 1000, sizeof value, cudaMemcpyDeviceToHost));
  MUST(cudaFree(values));
  MUST(cudaStreamDestroy(stream));
  return value;
}

template <class Take>
int refused(Take take, std::vector<void*>& taken, std::size_t& bytes) {
  int error = 0;
  for (std::size_t piece = 256 << 20; piece >= (2 << 20); piece /= 2) {
    void* pointer = nullptr;
    while ((error = take(&pointer, piece)) == 0) {
      taken.push_back(pointer);
      bytes += piece;
    }
    cudaGetLastError();
  }
  return error;
}

}  // namespace

int main() {
  int values[4] = {};
  std::vector<std::thread> threads;
  for (int& value : values) threads.emplace_back([&value] { value = add_times(9); });
  for (auto& thread : threads) thread.join();
  bool right = true;
  for (const int value : values) right = right && value == 10 * 1000;
  std::vector<void*> taken;
  std::size_t bytes = 0;
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  const int error = refused([](void** p, std::size_t n) { return cudaMalloc(p, n); }, taken, bytes);
  MUST(cudaMemGetInfo(&free_bytes, &total));
  for (void* p : taken) MUST(cudaFree(p));
  taken.clear();
  std::size_t async_bytes = 0;
  const int async_error = refused(
      [](void** p, std::size_t n) { return cudaMallocAsync(p, n, nullptr); }, taken, async_bytes);
  for (void* p : taken) MUST(cudaFreeAsync(p, nullptr));
  MUST(cudaDeviceSynchronize());
  cudaDeviceProp properties{};
  MUST(cudaGetDeviceProperties(&properties, 0));
  say("{\"right\": %s, \"error\": %d, \"granted\": %zu, \"free\": %zu, \"total\": %zu, "
      "\"property_total\": %zu, \"async_error\": %d, \"async_granted\": %zu}",
      right ? "true" : "false", error, bytes, free_bytes, total, properties.totalGlobalMem,
      async_error, async_bytes);
  return 0;
}
