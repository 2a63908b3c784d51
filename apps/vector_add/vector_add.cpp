// SPDX-License-Identifier: Apache-2.0
#include "vector_add/vector_add.hpp"

#include "vector_add/ptx.hpp"
#include "workload/context.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

namespace gantry::workload {
namespace {

constexpr int kElements = 50000;
constexpr unsigned kThreads = 256;
constexpr unsigned kBlocks = (kElements + kThreads - 1) / kThreads;
constexpr std::size_t kBytes = kElements * sizeof(float);
constexpr const char* kName = "gantry-vector-add";

// Numbers between 0 and 1, the same in every run.
std::vector<float> numbers(std::uint32_t seed) {
  std::vector<float> values(kElements);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8U) / 16777216.0F;
  }
  return values;
}

// Prints the six lines of the CUDA sample and returns the sums that the GPU computed.
Result<std::vector<float>> add_on_gpu(const Cuda& cuda, const std::vector<float>& a,
                                      const std::vector<float>& b, std::FILE* out) {
  GANTRY_TRY(CUmodule module, load_ptx(cuda, kVectorAddPtx));
  GANTRY_TRY(CUfunction function, find_kernel(cuda, module, "vectorAdd"));
  CUdeviceptr device_a = 0;
  CUdeviceptr device_b = 0;
  CUdeviceptr device_c = 0;
  for (CUdeviceptr* pointer : {&device_a, &device_b, &device_c})
    CUDA_TRY(cuda, cuMemAlloc_v2, pointer, kBytes);
  fmt::print(out, "Copy input data from the host memory to the CUDA device\n");
  CUDA_TRY(cuda, cuMemcpyHtoD_v2, device_a, a.data(), kBytes);
  CUDA_TRY(cuda, cuMemcpyHtoD_v2, device_b, b.data(), kBytes);
  fmt::print(out, "CUDA kernel launch with {} blocks of {} threads\n", kBlocks, kThreads);
  int elements = kElements;
  void* arguments[] = {&device_a, &device_b, &device_c, &elements};
  CUDA_TRY(cuda, cuLaunchKernel, function, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments,
           nullptr);
  CUDA_TRY(cuda, cuCtxSynchronize);
  fmt::print(out, "Copy output data from the CUDA device to the host memory\n");
  std::vector<float> sums(kElements);
  CUDA_TRY(cuda, cuMemcpyDtoH_v2, sums.data(), device_c, kBytes);
  for (CUdeviceptr pointer : {device_a, device_b, device_c}) CUDA_TRY(cuda, cuMemFree_v2, pointer);
  return sums;
}

Status add_vectors(const Options& options, std::FILE* out) {
  GANTRY_TRY(const Cuda cuda, open_cuda(options.library));
  CUDA_TRY(cuda, cuInit, 0);
  Context context(cuda);
  GANTRY_CHECK(context.create(options.device));
  if (options.memory_mib != 0) {
    CUdeviceptr kept = 0;  // ends with the context
    GANTRY_CHECK(cuda.check_allocation(cuda.cuMemAlloc_v2(&kept, options.memory_mib << 20U),
                                       "cuMemAlloc_v2", options.memory_mib));
    fmt::print(out, "[{} MiB taken]\n", options.memory_mib);
  }
  fmt::print(out, "[Vector addition of {} elements]\n", kElements);
  const std::vector<float> a = numbers(1);
  const std::vector<float> b = numbers(2);
  GANTRY_TRY(const std::vector<float> sums, add_on_gpu(cuda, a, b, out));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (std::fabs(a[i] + b[i] - sums[i]) <= 1e-5F) continue;
    fmt::print(out, "Test FAILED\n");
    return Error(
        Errc::Corrupt,
        fmt::format(
            "element {} is {}, not {}\n  cause: the GPU or its memory gives wrong results, or "
            "{} is not the driver's own library\n"
            "  remedy: nvidia-smi -q -d ECC; dmesg | grep -i xid",
            i, sums[i], a[i] + b[i], cuda.library));
  }
  fmt::print(out, "Test PASSED\nDone\n");
  std::fflush(out);
  std::this_thread::sleep_for(std::chrono::seconds(options.hold_seconds));
  return {};
}

}  // namespace

int vector_add(const Options& options, std::FILE* out, std::FILE* err) {
  const Status status = add_vectors(options, out);
  std::fflush(out);
  if (status.ok()) return 0;
  print_error(err, options.called.empty() ? kName : options.called, status.error());
  return 1;
}

}  // namespace gantry::workload
