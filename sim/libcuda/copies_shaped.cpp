// SPDX-License-Identifier: Apache-2.0
// Copies of two and three dimensions: rows between host memory, device memory and arrays.
#include "sim/libcuda/capture.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/host_work.hpp"
#include "sim/libcuda/transfer.hpp"

namespace gantry::sim::cuda {
namespace {

// One end of a copy, with where the first byte is and how far rows and slices are apart.
struct End {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  uint64_t x, y, z, pitch, height;
};

// The first byte and the strides; false if they are not possible.
struct Place {
  Side first;
  uint64_t row, slice;
};

struct Box {
  uint64_t width, height, depth;
};

constexpr uint64_t kMaxExtent = 1ULL << 40U;  // sums of a few cannot wrap around

// Whether `count` from `first` on lie in `size`.
bool fits(uint64_t first, uint64_t count, uint64_t size) {
  return first <= size && count <= size - first;
}

bool place_of(const End& end, const Box& box, Place& place) {
  if (box.width > kMaxExtent || end.x > kMaxExtent || end.y > kMaxExtent || end.z > kMaxExtent ||
      end.pitch > kMaxExtent || end.height > kMaxExtent)
    return false;
  uint64_t base = 0;
  place.row = end.pitch == 0 ? box.width + end.x : end.pitch;
  uint64_t height = end.height == 0 ? box.height + end.y : end.height;
  place.first.device = true;
  switch (end.type) {
    case CU_MEMORYTYPE_HOST:
      base = reinterpret_cast<uint64_t>(end.host);
      place.first.device = block_at(base) != nullptr;
      break;
    case CU_MEMORYTYPE_DEVICE: base = end.device; break;
    case CU_MEMORYTYPE_UNIFIED:
      base = end.device;
      place.first.device = block_at(base) != nullptr;
      break;
    case CU_MEMORYTYPE_ARRAY: {
      const Array* array = find<Array>(end.array);
      if (array == nullptr) return false;
      base = reinterpret_cast<uint64_t>(array->data);
      place.row = array->row;
      height = array->shape.Height == 0 ? 1 : array->shape.Height;
      const uint64_t depth = array->shape.Depth == 0 ? 1 : array->shape.Depth;
      if (!fits(end.x, box.width, array->row) || !fits(end.y, box.height, height) ||
          !fits(end.z, box.depth, depth))
        return false;
      place.first.device = false;
      break;
    }
    default: return false;
  }
  if (box.width > place.row) return false;
  place.slice = place.row * height;
  place.first.address = base + end.z * place.slice + end.y * place.row + end.x;
  return true;
}

// Two dimensions are three with one slice.
CUDA_MEMCPY3D with_depth(const CUDA_MEMCPY2D& copy) {
  CUDA_MEMCPY3D shaped{};
  shaped.srcXInBytes = copy.srcXInBytes;
  shaped.srcY = copy.srcY;
  shaped.srcMemoryType = copy.srcMemoryType;
  shaped.srcHost = copy.srcHost;
  shaped.srcDevice = copy.srcDevice;
  shaped.srcArray = copy.srcArray;
  shaped.srcPitch = copy.srcPitch;
  shaped.dstXInBytes = copy.dstXInBytes;
  shaped.dstY = copy.dstY;
  shaped.dstMemoryType = copy.dstMemoryType;
  shaped.dstHost = copy.dstHost;
  shaped.dstDevice = copy.dstDevice;
  shaped.dstArray = copy.dstArray;
  shaped.dstPitch = copy.dstPitch;
  shaped.WidthInBytes = copy.WidthInBytes;
  shaped.Height = copy.Height;
  shaped.Depth = 1;
  return shaped;
}

enum class Wait : uint8_t { No, Yes };

CUresult copy_3d(const CUDA_MEMCPY3D* copy, CUstream handle, Wait wait) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = working_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (wait == Wait::Yes) {
    if (const CUresult result = refuse_while_capturing(); result != CUDA_SUCCESS) return result;
  }
  bool records = false;
  if (const CUresult result = recording(*stream, records); result != CUDA_SUCCESS) return result;
  if (records) return record_copy(*stream, *copy);
  wait_for_host_work(host_work_before(*stream));
  uint64_t duration_ns = 0;
  const CUresult result = copy_now(*copy, *stream->context->device, duration_ns);
  if (result != CUDA_SUCCESS || duration_ns == 0) return result;
  enqueue(*stream, duration_ns);
  if (wait == Wait::Yes) wait_until(*stream->context->device, stream->ready_ns);
  return CUDA_SUCCESS;
}

CUresult copy_2d(const CUDA_MEMCPY2D* copy, CUstream handle, Wait wait) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D shaped = with_depth(*copy);
  return copy_3d(&shaped, handle, wait);
}

}  // namespace

CUresult copy_now(const CUDA_MEMCPY3D& copy, const Device& device, uint64_t& duration_ns) {
  const End from = {copy.srcMemoryType, copy.srcHost,     copy.srcDevice,
                    copy.srcArray,      copy.srcXInBytes, copy.srcY,
                    copy.srcZ,          copy.srcPitch,    copy.srcHeight};
  const End to = {copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray, copy.dstXInBytes,
                  copy.dstY,          copy.dstZ,    copy.dstPitch,  copy.dstHeight};
  const Box box = {copy.WidthInBytes, copy.Height, copy.Depth};
  const auto [width, height, depth] = box;
  duration_ns = 0;
  if (width == 0 || height == 0 || depth == 0) return CUDA_SUCCESS;
  if (height > (1ULL << 32U) || depth > (1ULL << 32U)) return CUDA_ERROR_INVALID_VALUE;
  Place source{};
  Place target{};
  if (!place_of(from, box, source) || !place_of(to, box, target)) return CUDA_ERROR_INVALID_VALUE;
  for (uint64_t z = 0; z < depth; ++z) {
    for (uint64_t y = 0; y < height; ++y) {
      const Side in = {source.first.address + z * source.slice + y * source.row,
                       source.first.device};
      const Side out = {target.first.address + z * target.slice + y * target.row,
                        target.first.device};
      if (!valid(in, width) || !valid(out, width)) return CUDA_ERROR_INVALID_VALUE;
      move(out, in, width);
    }
  }
  duration_ns = copy_ns(device, path_between(target.first, source.first), width * height * depth);
  return CUDA_SUCCESS;
}

namespace entry {

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copy_2d(copy, nullptr, Wait::Yes);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return copy_2d(copy, nullptr, Wait::Yes);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy_2d(copy, stream, Wait::No);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return copy_3d(copy, nullptr, Wait::Yes);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy_3d(copy, stream, Wait::No);
}

}  // namespace entry
}  // namespace gantry::sim::cuda
