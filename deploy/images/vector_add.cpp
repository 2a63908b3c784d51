// SPDX-License-Identifier: Apache-2.0
// Adds two vectors on a GPU through the CUDA driver API. It needs cuda.h and a libcuda to link
// with, both of a devel image, but no nvcc: the kernel is PTX, which the driver compiles.
// With -DUSE_CUBLAS it also links with a library of the runtime image.
#include <cuda.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifdef USE_CUBLAS
extern "C" std::size_t cublasGetCudartVersion(void);  // of cublas_v2.h
#endif

namespace {

constexpr int kElements = 50000;
constexpr unsigned kThreads = 256;
constexpr unsigned kBlocks = (kElements + kThreads - 1) / kThreads;
constexpr std::size_t kBytes = kElements * sizeof(float);

constexpr const char* kKernel = R"(.version 6.3
.target sm_75
.address_size 64
.visible .entry vectorAdd(
  .param .u64 in_a, .param .u64 in_b, .param .u64 out_c, .param .u32 count)
{
  .reg .pred %past;
  .reg .b32 %index, %block, %size, %thread, %n;
  .reg .b64 %a, %b, %c, %offset;
  .reg .f32 %x, %y;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.s32 %index, %block, %size, %thread;
  ld.param.u32 %n, [count];
  setp.ge.s32 %past, %index, %n;
  @%past bra done;
  ld.param.u64 %a, [in_a];
  ld.param.u64 %b, [in_b];
  ld.param.u64 %c, [out_c];
  cvta.to.global.u64 %a, %a;
  cvta.to.global.u64 %b, %b;
  cvta.to.global.u64 %c, %c;
  mul.wide.s32 %offset, %index, 4;
  add.s64 %a, %a, %offset;
  add.s64 %b, %b, %offset;
  add.s64 %c, %c, %offset;
  ld.global.f32 %x, [%a];
  ld.global.f32 %y, [%b];
  add.f32 %x, %x, %y;
  st.global.f32 [%c], %x;
done:
  ret;
}
)";

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "vector-add: %s: %s\n", call, name == nullptr ? "unknown error" : name);
  std::exit(1);
}
#define CHECK(call) check(call, #call)

CUfunction load_kernel() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuModuleLoadData(&module, kKernel));
  CHECK(cuModuleGetFunction(&function, module, "vectorAdd"));
  return function;
}

CUdeviceptr on_gpu(const std::vector<float>& values) {
  CUdeviceptr pointer = 0;
  CHECK(cuMemAlloc_v2(&pointer, kBytes));
  CHECK(cuMemcpyHtoD_v2(pointer, values.data(), kBytes));
  return pointer;
}

std::vector<float> add(const std::vector<float>& a, const std::vector<float>& b) {
  const CUfunction function = load_kernel();
  std::vector<float> sums(kElements);
  CUdeviceptr pointers[] = {on_gpu(a), on_gpu(b), on_gpu(sums)};
  int count = kElements;
  void* arguments[] = {&pointers[0], &pointers[1], &pointers[2], &count};
  CHECK(cuLaunchKernel(function, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK(cuMemcpyDtoH_v2(sums.data(), pointers[2], kBytes));
  return sums;
}

}  // namespace

int main() {
  char name[256] = "";
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuDeviceGetName(name, sizeof name, 0));
  std::printf("[Vector addition of %d elements on %s]\n", kElements, name);
#ifdef USE_CUBLAS
  std::printf("cuBLAS is built with CUDA %zu\n", cublasGetCudartVersion());
#endif
  std::vector<float> a(kElements);
  std::vector<float> b(kElements);
  for (int i = 0; i < kElements; ++i) {
    a[i] = static_cast<float>(i) / kElements;
    b[i] = 1.0F - a[i];
  }
  const std::vector<float> sums = add(a, b);
  for (const float sum : sums) {
    if (std::fabs(sum - 1.0F) <= 1e-5F) continue;
    std::printf("Test FAILED\n");
    return 1;
  }
  std::printf("Test PASSED\n");
  return 0;
}
