// SPDX-License-Identifier: Apache-2.0
// Hooks of arrays. The GPU has its own layout for them: tiles of 64 bytes and 8 rows. Arrays have
// no address that would tell the granule of a small one, so small arrays are charged with their own
// size.
#include "sharing/fence/allocations.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/small_allocations.hpp"

namespace gantry::fence {
namespace {

constexpr uint64_t kTileBytes = 64;
constexpr uint64_t kTileRows = 8;
constexpr unsigned int kWithoutMemory = 0x40U | 0x80U;  // sparse, mapped later

// Few formats have more than one byte per channel; an unknown format counts as the largest.
uint64_t channel_bytes(unsigned int format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    default: return 4;
  }
}

uint64_t at_least_one(uint64_t value) {
  return value == 0 ? 1 : value;
}

uint64_t half(uint64_t value, unsigned int times) {
  return at_least_one(times < 64 ? value >> times : 0);
}

uint64_t times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

struct Shape {
  uint64_t width, height, depth;
  unsigned int format, channels, flags;
};

template <class Descriptor>
Shape shape_3d(const Descriptor& given) {
  return {given.Width,       given.Height, given.Depth, static_cast<unsigned int>(given.Format),
          given.NumChannels, given.Flags};
}
template <class Descriptor>
Shape shape_2d(const Descriptor& given) {
  return {
      given.Width, given.Height, 0, static_cast<unsigned int>(given.Format), given.NumChannels, 0};
}

// The size of one level.
uint64_t bytes_of(const Shape& shape, unsigned int level) {
  const bool layered = (shape.flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  const uint64_t depth = layered ? at_least_one(shape.depth) : half(shape.depth, level);
  const uint64_t element = times(channel_bytes(shape.format), shape.channels);
  const uint64_t row = round_up(times(half(shape.width, level), element), kTileBytes);
  return times(times(row, round_up(half(shape.height, level), kTileRows)), depth);
}

uint64_t charge_of(const Shape& shape, unsigned int levels) {
  constexpr unsigned int kMaxLevels = 32;
  if ((shape.flags & kWithoutMemory) != 0) return 0;
  uint64_t total = 0;
  for (unsigned int level = 0; level < levels && level < kMaxLevels; ++level) {
    if (__builtin_add_overflow(total, bytes_of(shape, level), &total)) return UINT64_MAX;
  }
  return round_up(total, total <= kMaxSmallBytes ? kTileBytes * kTileRows : kGranule);
}

template <class Handle, class Call, class Destroy>
CUresult create_charged(Handle* handle, uint64_t charge, Call call, Destroy destroy) {
  const uint32_t gpu = current_gpu();
  Handle made = nullptr;
  MemoryCall underway;
  if (!reserve(gpu, charge, underway))
    return current_context() == nullptr ? call(&made) : refused(gpu, charge);
  CUresult result = call(&made);
  if (result == CUDA_SUCCESS && add_allocation(reinterpret_cast<uint64_t>(made), gpu, charge)) {
    *handle = made;
    return result;
  }
  if (result == CUDA_SUCCESS) {
    destroy(made);
    result = refused(gpu, charge);
  }
  release_reserved(gpu, charge);
  return result;
}

template <class Handle, class Call>
CUresult destroy_known(Handle handle, Call call) {
  if (!attached()) return call(handle);
  PendingFree leaving(reinterpret_cast<uint64_t>(handle));
  return leaving.done(call(handle));
}

CUresult create_array(CUarray* handle, const Shape& shape, CUresult (*call)(CUarray*, const void*),
                      const void* descriptor) {
  return create_charged(
      handle, charge_of(shape, 1), [&](CUarray* to) { return call(to, descriptor); },
      [](CUarray made) { real().cuArrayDestroy(made); });
}

}  // namespace
}  // namespace gantry::fence

using namespace gantry::fence;

#define FENCE_ARRAY(symbol, descriptor, shape)                          \
  CUresult symbol(CUarray* handle, const descriptor* allocate_array) {  \
    if (!attached() || handle == nullptr || allocate_array == nullptr)  \
      return real().symbol(handle, allocate_array);                     \
    return create_array(                                                \
        handle, shape(*allocate_array),                                 \
        [](CUarray* to, const void* as) {                               \
          return real().symbol(to, static_cast<const descriptor*>(as)); \
        },                                                              \
        allocate_array);                                                \
  }
FENCE_ARRAY(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, shape_2d)
FENCE_ARRAY(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, shape_2d)
FENCE_ARRAY(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, shape_3d)
FENCE_ARRAY(cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR, shape_3d)

CUresult cuArrayDestroy(CUarray array) {
  return destroy_known(array, [](CUarray which) { return real().cuArrayDestroy(which); });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle,
                                const CUDA_ARRAY3D_DESCRIPTOR* mipmapped_array_desc,
                                unsigned int num_mipmap_levels) {
  if (!attached() || handle == nullptr || mipmapped_array_desc == nullptr || num_mipmap_levels == 0)
    return real().cuMipmappedArrayCreate(handle, mipmapped_array_desc, num_mipmap_levels);
  return create_charged(
      handle, charge_of(shape_3d(*mipmapped_array_desc), num_mipmap_levels),
      [&](CUmipmappedArray* to) {
        return real().cuMipmappedArrayCreate(to, mipmapped_array_desc, num_mipmap_levels);
      },
      [](CUmipmappedArray made) { real().cuMipmappedArrayDestroy(made); });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmapped_array) {
  return destroy_known(mipmapped_array, [](CUmipmappedArray which) {
    return real().cuMipmappedArrayDestroy(which);
  });
}
