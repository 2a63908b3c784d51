// SPDX-License-Identifier: Apache-2.0
// Arrays: memory in the card's own layout, tiles of 64 bytes and 8 rows, which determines the
// charge. Our layout is row after row.
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/memory.hpp"

#include <string.h>

namespace gantry::sim::cuda {
namespace {

constexpr uint64_t kTileBytes = 64;
constexpr uint64_t kTileRows = 8;

size_t format_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
  }
  return 0;
}

size_t at_least_one(size_t value) {
  return value == 0 ? 1 : value;
}

bool measure(const CUDA_ARRAY3D_DESCRIPTOR& shape, Array& array) {
  const unsigned channels = shape.NumChannels;
  array.element = format_bytes(shape.Format) * channels;
  if (array.element == 0 || shape.Width == 0 || (channels != 1 && channels != 2 && channels != 4))
    return false;
  constexpr size_t kMaxExtent = 1U << 24U;
  if (shape.Width > kMaxExtent || shape.Height > kMaxExtent || shape.Depth > kMaxExtent)
    return false;
  array.row = shape.Width * array.element;
  return !__builtin_mul_overflow(array.row, at_least_one(shape.Height) * at_least_one(shape.Depth),
                                 &array.size);
}

uint64_t tiled_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape, const Array& array) {
  return round_up(array.row, kTileBytes) * round_up(at_least_one(shape.Height), kTileRows) *
         at_least_one(shape.Depth);
}

void end_array(Array& array) {
  unmap_memory(array.data, array.size);
  if (array.memory != nullptr) release(*array.memory);
  destroy(&array);
}

// `bytes` of the card's memory, 0 for the levels of a mipmap after the first.
CUresult make_array(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& shape, uint64_t bytes,
                    Array*& array) {
  Array measured{};
  if (!measure(shape, measured)) return CUDA_ERROR_INVALID_VALUE;
  Block* memory = nullptr;
  if (bytes != 0) {
    const CUresult result = allocate(context, bytes, Reach::Anywhere, memory);
    if (result != CUDA_SUCCESS) return result;
  }
  array = make<Array>(&context);
  char* data = array == nullptr ? nullptr : map_memory(measured.size);
  if (data == nullptr) {
    if (array != nullptr) destroy(array);
    if (memory != nullptr) release(*memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  array->shape = shape;
  array->element = measured.element;
  array->row = measured.row;
  array->size = measured.size;
  array->data = data;
  array->memory = memory;
  return CUDA_SUCCESS;
}

uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  Array measured{};
  return measure(shape, measured) ? tiled_bytes(shape, measured) : 0;
}

size_t half(size_t value, unsigned times) {
  return value == 0 ? 0 : at_least_one(value >> times);
}

CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR& whole, unsigned level) {
  CUDA_ARRAY3D_DESCRIPTOR shape = whole;
  shape.Width = half(shape.Width, level);
  shape.Height = half(shape.Height, level);
  shape.Depth = half(shape.Depth, level);
  return shape;
}

CUresult copy_line(Array* array, size_t offset, size_t bytes) {
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return offset <= array->size && bytes <= array->size - offset ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

// Levels of mipmaps are also arrays.
void free_context_arrays(const Context& context) {
  size_t cursor = 0;
  while (Object* object = next_of(&context, Kind::Array, cursor))
    end_array(*static_cast<Array*>(object));
  cursor = 0;
  while (Object* object = next_of(&context, Kind::Mipmap, cursor))
    destroy(static_cast<Mipmap*>(object));
}

namespace entry {

CUresult cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* allocate_array) {
  if (handle == nullptr || allocate_array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  Array* array = nullptr;
  const CUresult result = make_array(*context, *allocate_array, bytes_of(*allocate_array), array);
  if (result == CUDA_SUCCESS) *handle = handle_of<CUarray>(array);
  return result;
}

CUresult cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* allocate_array) {
  if (allocate_array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = allocate_array->Width;
  shape.Height = allocate_array->Height;
  shape.Format = allocate_array->Format;
  shape.NumChannels = allocate_array->NumChannels;
  return entry::cuArray3DCreate_v2(handle, &shape);
}

CUresult cuArrayCreate(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR_v1* allocate_array) {
  if (allocate_array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY_DESCRIPTOR wide = {allocate_array->Width, allocate_array->Height,
                                      allocate_array->Format, allocate_array->NumChannels};
  return entry::cuArrayCreate_v2(handle, &wide);
}
CUresult cuArray3DCreate(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR_v1* allocate_array) {
  if (allocate_array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide = {allocate_array->Width,       allocate_array->Height,
                                        allocate_array->Depth,       allocate_array->Format,
                                        allocate_array->NumChannels, allocate_array->Flags};
  return entry::cuArray3DCreate_v2(handle, &wide);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* array_descriptor, CUarray array) {
  const Array* known = find<Array>(array);
  if (array_descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *array_descriptor = known->shape;
  return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* array_descriptor, CUarray array) {
  const Array* known = find<Array>(array);
  if (array_descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *array_descriptor = {known->shape.Width, known->shape.Height, known->shape.Format,
                       known->shape.NumChannels};
  return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array) {
  Array* known = find<Array>(array);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (known->level) return CUDA_ERROR_INVALID_VALUE;
  end_array(*known);
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle,
                                const CUDA_ARRAY3D_DESCRIPTOR* mipmapped_array_desc,
                                unsigned int num_mipmap_levels) {
  if (handle == nullptr || mipmapped_array_desc == nullptr || num_mipmap_levels == 0)
    return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  auto* mipmap = make<Mipmap>(context);
  if (mipmap == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_SUCCESS;
  const unsigned levels = num_mipmap_levels < 32 ? num_mipmap_levels : 32;
  uint64_t bytes = 0;
  for (unsigned level = 0; level < levels; ++level)
    bytes += bytes_of(level_of(*mipmapped_array_desc, level));
  for (unsigned level = 0; level < levels; ++level) {
    Array* made = nullptr;
    result =
        make_array(*context, level_of(*mipmapped_array_desc, level), level == 0 ? bytes : 0, made);
    if (result != CUDA_SUCCESS) break;
    made->level = true;
    mipmap->level[level] = made;
    mipmap->count = level + 1;
  }
  if (result != CUDA_SUCCESS) {
    for (unsigned level = 0; level < mipmap->count; ++level) end_array(*mipmap->level[level]);
    destroy(mipmap);
    return result;
  }
  *handle = handle_of<CUmipmappedArray>(mipmap);
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray* level_array, CUmipmappedArray mipmapped_array,
                                  unsigned int level) {
  const Mipmap* mipmap = find<Mipmap>(mipmapped_array);
  if (level_array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (level >= mipmap->count) return CUDA_ERROR_INVALID_VALUE;
  *level_array = handle_of<CUarray>(mipmap->level[level]);
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmapped_array) {
  Mipmap* mipmap = find<Mipmap>(mipmapped_array);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (unsigned level = 0; level < mipmap->count; ++level) end_array(*mipmap->level[level]);
  destroy(mipmap);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoA_v2(CUarray dst_array, size_t dst_offset, const void* src_host, size_t bytes) {
  Array* array = find<Array>(dst_array);
  if (const CUresult result = copy_line(array, dst_offset, bytes); result != CUDA_SUCCESS)
    return result;
  if (src_host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(array->data + dst_offset, src_host, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAtoH_v2(void* dst_host, CUarray src_array, size_t src_offset, size_t bytes) {
  const Array* array = find<Array>(src_array);
  if (const CUresult result = copy_line(find<Array>(src_array), src_offset, bytes);
      result != CUDA_SUCCESS)
    return result;
  if (dst_host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(dst_host, array->data + src_offset, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoA_v2(CUarray dst_array, size_t dst_offset, CUdeviceptr src_device,
                         size_t bytes) {
  Array* array = find<Array>(dst_array);
  if (const CUresult result = copy_line(array, dst_offset, bytes); result != CUDA_SUCCESS)
    return result;
  return entry::cuMemcpyDtoH_v2(array->data + dst_offset, src_device, bytes);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst_device, CUarray src_array, size_t src_offset,
                         size_t bytes) {
  const Array* array = find<Array>(src_array);
  if (const CUresult result = copy_line(find<Array>(src_array), src_offset, bytes);
      result != CUDA_SUCCESS)
    return result;
  return entry::cuMemcpyHtoD_v2(dst_device, array->data + src_offset, bytes);
}

}  // namespace entry
}  // namespace gantry::sim::cuda
