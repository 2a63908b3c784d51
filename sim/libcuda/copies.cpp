// SPDX-License-Identifier: Apache-2.0
// Entry points that copy one run of bytes, or fill.
#include "sim/libcuda/capture.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/host_work.hpp"
#include "sim/libcuda/transfer.hpp"

#include <string.h>

namespace gantry::sim::cuda {
namespace {

// One run of bytes is a box of one row.
CUDA_MEMCPY3D as_box(Side to, Side from, uint64_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from.device ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_HOST;
  copy.srcHost = reinterpret_cast<const void*>(from.address);
  copy.srcDevice = from.address;
  copy.dstMemoryType = to.device ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_HOST;
  copy.dstHost = reinterpret_cast<void*>(to.address);
  copy.dstDevice = to.address;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUresult copy_in(Stream& stream, Side to, Side from, uint64_t bytes) {
  bool records = false;
  if (const CUresult result = recording(stream, records); result != CUDA_SUCCESS) return result;
  if (records) return record_copy(stream, as_box(to, from, bytes));
  wait_for_host_work(host_work_before(stream));
  if (!valid(to, bytes) || !valid(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return CUDA_SUCCESS;
  move(to, from, bytes);
  enqueue(stream, copy_ns(*stream.context->device, path_between(to, from), bytes));
  return CUDA_SUCCESS;
}

CUresult copy_async(Side to, Side from, uint64_t bytes, CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = working_stream(handle, stream); result != CUDA_SUCCESS) return result;
  return copy_in(*stream, to, from, bytes);
}

CUresult copy(Side to, Side from, uint64_t bytes) {
  Stream* stream = nullptr;
  if (const CUresult result = working_stream(nullptr, stream); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = refuse_while_capturing(); result != CUDA_SUCCESS) return result;
  const CUresult result = copy_in(*stream, to, from, bytes);
  if (result == CUDA_SUCCESS) wait_until(*stream->context->device, stream->ready_ns);
  return result;
}

template <class T>
void fill_row(uint64_t address, T value, uint64_t count) {
  const uint64_t bytes = count * sizeof(T);
  for (uint64_t done = 0; done < bytes;) {
    char* data = nullptr;
    const uint64_t length = piece_at(address + done, bytes - done, data);
    if (length == 0) return;
    for (uint64_t at = 0; at + sizeof(T) <= length; at += sizeof(T))
      memcpy(data + at, &value, sizeof(T));
    done += length;
  }
}

template <class T>
CUresult fill_rows(const CUDA_MEMSET_NODE_PARAMS& fill) {
  const uint64_t row = fill.width * sizeof(T);
  uint64_t span = row;
  if (fill.dst % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (fill.height > 1) {
    if (fill.pitch < row || fill.pitch % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(fill.pitch, fill.height - 1, &span) ||
        __builtin_add_overflow(span, row, &span))
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (!reachable(fill.dst, span)) return CUDA_ERROR_INVALID_VALUE;
  for (uint64_t line = 0; line < fill.height; ++line)
    fill_row(fill.dst + line * fill.pitch, static_cast<T>(fill.value), fill.width);
  return CUDA_SUCCESS;
}

template <class T>
CUresult fill(uint64_t address, uint64_t pitch, T value, uint64_t width, uint64_t height,
              CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = working_stream(handle, stream); result != CUDA_SUCCESS) return result;
  bool records = false;
  if (const CUresult result = recording(*stream, records); result != CUDA_SUCCESS) return result;
  const CUDA_MEMSET_NODE_PARAMS wanted = {address, pitch, value, sizeof(T), width, height};
  if (records) return record_fill(*stream, wanted);
  wait_for_host_work(host_work_before(*stream));
  uint64_t duration_ns = 0;
  const CUresult result = fill_now(wanted, *stream->context->device, duration_ns);
  if (result == CUDA_SUCCESS && duration_ns != 0) enqueue(*stream, duration_ns);
  return result;
}

Side unified_side(uint64_t address) {
  return host_side(reinterpret_cast<const void*>(address));
}

// The first attributes apply from the first copy on, and each until the next.
bool sound_attributes(const CUmemcpyAttributes* attributes, const size_t* starts, size_t count,
                      size_t copies) {
  if (attributes == nullptr || starts == nullptr || count == 0 || count > copies) return false;
  for (size_t i = 0; i < count; ++i) {
    const CUmemcpySrcAccessOrder order = attributes[i].srcAccessOrder;
    if (order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
      return false;
    if (i == 0 ? starts[0] != 0 : starts[i] <= starts[i - 1] || starts[i] >= copies) return false;
  }
  return true;
}

// Only in a stream that the program created: not in the default stream, and not into a graph.
CUresult copy_batch(const CUdeviceptr* dsts, const CUdeviceptr* srcs, const size_t* sizes,
                    size_t count, CUstream handle, size_t& failed) {
  if (dsts == nullptr || srcs == nullptr || sizes == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = find<Stream>(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result =
        copy_in(*stream, unified_side(dsts[i]), unified_side(srcs[i]), sizes[i]);
    if (result == CUDA_SUCCESS) continue;
    failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult fill_now(const CUDA_MEMSET_NODE_PARAMS& fill, const Device& device,
                  uint64_t& duration_ns) {
  duration_ns = 0;
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  if (fill.width > (1ULL << 50U) || fill.height > (1ULL << 50U)) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (fill.elementSize == 1) result = fill_rows<unsigned char>(fill);
  if (fill.elementSize == 2) result = fill_rows<unsigned short>(fill);
  if (fill.elementSize == 4) result = fill_rows<unsigned int>(fill);
  if (result == CUDA_SUCCESS)
    duration_ns = copy_ns(device, Path::OnDevice, fill.width * fill.elementSize * fill.height);
  return result;
}

namespace entry {

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return copy(unified_side(dst), unified_side(src), bytes);
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return copy_async(unified_side(dst), unified_side(src), bytes, stream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* attribute_starts,
                            size_t attribute_count, size_t* failed, CUstream stream) {
  size_t at = SIZE_MAX;  // no single copy caused the error
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (sound_attributes(attributes, attribute_starts, attribute_count, count))
    result = copy_batch(dsts, srcs, sizes, count, stream, at);
  if (result != CUDA_SUCCESS && failed != nullptr) *failed = at;
  return result;
}
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* attribute_starts,
                               size_t attribute_count, CUstream stream) {
  size_t at = SIZE_MAX;
  if (!sound_attributes(attributes, attribute_starts, attribute_count, count))
    return CUDA_ERROR_INVALID_VALUE;
  return copy_batch(dsts, srcs, sizes, count, stream, at);
}

CUresult cuMemcpyPeer(CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device,
                      CUcontext src_context, size_t bytes) {
  if (find<Context>(dst_context) == nullptr || find<Context>(src_context) == nullptr)
    return CUDA_ERROR_INVALID_CONTEXT;
  return copy(device_side(dst_device), device_side(src_device), bytes);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device,
                           CUcontext src_context, size_t bytes, CUstream stream) {
  if (find<Context>(dst_context) == nullptr || find<Context>(src_context) == nullptr)
    return CUDA_ERROR_INVALID_CONTEXT;
  return copy_async(device_side(dst_device), device_side(src_device), bytes, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst_device, const void* src_host, size_t bytes) {
  return copy(device_side(dst_device), host_side(src_host), bytes);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst_device, const void* src_host, size_t bytes,
                              CUstream stream) {
  return copy_async(device_side(dst_device), host_side(src_host), bytes, stream);
}
CUresult cuMemcpyDtoH_v2(void* dst_host, CUdeviceptr src_device, size_t bytes) {
  return copy(host_side(dst_host), device_side(src_device), bytes);
}
CUresult cuMemcpyDtoHAsync_v2(void* dst_host, CUdeviceptr src_device, size_t bytes,
                              CUstream stream) {
  return copy_async(host_side(dst_host), device_side(src_device), bytes, stream);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst_device, CUdeviceptr src_device, size_t bytes) {
  return copy_async(device_side(dst_device), device_side(src_device), bytes, nullptr);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst_device, CUdeviceptr src_device, size_t bytes,
                              CUstream stream) {
  return copy_async(device_side(dst_device), device_side(src_device), bytes, stream);
}

CUresult cuMemsetD8_v2(CUdeviceptr dst_device, unsigned char byte, size_t n) {
  return fill(dst_device, 0, byte, n, 1, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr dst_device, unsigned short half, size_t n) {
  return fill(dst_device, 0, half, n, 1, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr dst_device, unsigned int word, size_t n) {
  return fill(dst_device, 0, word, n, 1, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr dst_device, unsigned char byte, size_t n, CUstream stream) {
  return fill(dst_device, 0, byte, n, 1, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr dst_device, unsigned short half, size_t n, CUstream stream) {
  return fill(dst_device, 0, half, n, 1, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr dst_device, unsigned int word, size_t n, CUstream stream) {
  return fill(dst_device, 0, word, n, 1, stream);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr dst_device, size_t dst_pitch, unsigned char byte, size_t width,
                         size_t height) {
  return fill(dst_device, dst_pitch, byte, width, height, nullptr);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr dst_device, size_t dst_pitch, unsigned short half,
                          size_t width, size_t height) {
  return fill(dst_device, dst_pitch, half, width, height, nullptr);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr dst_device, size_t dst_pitch, unsigned int word, size_t width,
                          size_t height) {
  return fill(dst_device, dst_pitch, word, width, height, nullptr);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dst_device, size_t dst_pitch, unsigned char byte,
                           size_t width, size_t height, CUstream stream) {
  return fill(dst_device, dst_pitch, byte, width, height, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dst_device, size_t dst_pitch, unsigned short half,
                            size_t width, size_t height, CUstream stream) {
  return fill(dst_device, dst_pitch, half, width, height, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dst_device, size_t dst_pitch, unsigned int word,
                            size_t width, size_t height, CUstream stream) {
  return fill(dst_device, dst_pitch, word, width, height, stream);
}

}  // namespace entry
}  // namespace gantry::sim::cuda
