// SPDX-License-Identifier: Apache-2.0
// Hooks of fills and of copies within the GPU. They run on the multiprocessors or use the full
// memory bandwidth, so they wait at the gate and count like launches.
//
// Copies between host and GPU pass. They use separate copy engines, which can work for one tenant
// while the multiprocessors work for another; holding them back would only cost the tenant twice.
// If the arguments do not tell the kind of a copy, it counts.
#include "sharing/fence/gated_launch.hpp"

using namespace gantry::fence;

namespace {

template <class Copy>
bool with_host(const Copy* copy) {
  return copy != nullptr &&
         (copy->srcMemoryType == CU_MEMORYTYPE_HOST || copy->dstMemoryType == CU_MEMORYTYPE_HOST);
}

template <class Call>
CUresult device_work(CUstream stream, Call call) {
  return launched(stream, LaunchKind::Kernel, nullptr, call);
}

}  // namespace

#define FENCE_ON_STREAM(symbol, parameters, arguments)                                      \
  CUresult symbol parameters {                                                              \
    return device_work(legacy(stream), [&] { return real().symbol arguments; });            \
  }                                                                                         \
  CUresult symbol##_ptsz parameters {                                                       \
    return device_work(per_thread(stream), [&] { return real().symbol##_ptsz arguments; }); \
  }
#define FENCE_ON_DEFAULT_STREAM(symbol, parameters, arguments)                                \
  CUresult symbol parameters {                                                                \
    return device_work(CU_STREAM_LEGACY, [&] { return real().symbol arguments; });            \
  }                                                                                           \
  CUresult symbol##_ptds parameters {                                                         \
    return device_work(CU_STREAM_PER_THREAD, [&] { return real().symbol##_ptds arguments; }); \
  }

FENCE_ON_STREAM(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
                (dst, src, bytes, stream))
FENCE_ON_STREAM(cuMemcpyDtoDAsync_v2,
                (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
                (dst, src, bytes, stream))
FENCE_ON_STREAM(cuMemcpyPeerAsync,
                (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                 size_t bytes, CUstream stream),
                (dst, dst_context, src, src_context, bytes, stream))
FENCE_ON_STREAM(cuMemsetD8Async, (CUdeviceptr dst, unsigned char byte, size_t n, CUstream stream),
                (dst, byte, n, stream))
FENCE_ON_STREAM(cuMemsetD16Async, (CUdeviceptr dst, unsigned short half, size_t n, CUstream stream),
                (dst, half, n, stream))
FENCE_ON_STREAM(cuMemsetD32Async, (CUdeviceptr dst, unsigned int word, size_t n, CUstream stream),
                (dst, word, n, stream))
FENCE_ON_STREAM(cuMemsetD2D8Async,
                (CUdeviceptr dst, size_t pitch, unsigned char byte, size_t width, size_t height,
                 CUstream stream),
                (dst, pitch, byte, width, height, stream))
FENCE_ON_STREAM(cuMemsetD2D16Async,
                (CUdeviceptr dst, size_t pitch, unsigned short half, size_t width, size_t height,
                 CUstream stream),
                (dst, pitch, half, width, height, stream))
FENCE_ON_STREAM(cuMemsetD2D32Async,
                (CUdeviceptr dst, size_t pitch, unsigned int word, size_t width, size_t height,
                 CUstream stream),
                (dst, pitch, word, width, height, stream))

FENCE_ON_DEFAULT_STREAM(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
                        (dst, src, bytes))
FENCE_ON_DEFAULT_STREAM(cuMemcpyPeer,
                        (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                         CUcontext src_context, size_t bytes),
                        (dst, dst_context, src, src_context, bytes))
FENCE_ON_DEFAULT_STREAM(cuMemsetD8_v2, (CUdeviceptr dst, unsigned char byte, size_t n),
                        (dst, byte, n))
FENCE_ON_DEFAULT_STREAM(cuMemsetD16_v2, (CUdeviceptr dst, unsigned short half, size_t n),
                        (dst, half, n))
FENCE_ON_DEFAULT_STREAM(cuMemsetD32_v2, (CUdeviceptr dst, unsigned int word, size_t n),
                        (dst, word, n))
FENCE_ON_DEFAULT_STREAM(cuMemsetD2D8_v2,
                        (CUdeviceptr dst, size_t pitch, unsigned char byte, size_t width,
                         size_t height),
                        (dst, pitch, byte, width, height))
FENCE_ON_DEFAULT_STREAM(cuMemsetD2D16_v2,
                        (CUdeviceptr dst, size_t pitch, unsigned short half, size_t width,
                         size_t height),
                        (dst, pitch, half, width, height))
FENCE_ON_DEFAULT_STREAM(cuMemsetD2D32_v2,
                        (CUdeviceptr dst, size_t pitch, unsigned int word, size_t width,
                         size_t height),
                        (dst, pitch, word, width, height))

#define FENCE_SHAPED_COPY(symbol, type)                                                         \
  CUresult symbol(const type* copy, CUstream stream) {                                          \
    if (with_host(copy)) return real().symbol(copy, stream);                                    \
    return device_work(legacy(stream), [&] { return real().symbol(copy, stream); });            \
  }                                                                                             \
  CUresult symbol##_ptsz(const type* copy, CUstream stream) {                                   \
    if (with_host(copy)) return real().symbol##_ptsz(copy, stream);                             \
    return device_work(per_thread(stream), [&] { return real().symbol##_ptsz(copy, stream); }); \
  }
FENCE_SHAPED_COPY(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D)
FENCE_SHAPED_COPY(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D)
