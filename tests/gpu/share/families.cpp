// SPDX-License-Identifier: Apache-2.0
#include "families.hpp"

#include "said.hpp"

namespace {

constexpr std::size_t kRow =
    16384;  // bytes of a row, for what has rows: no array is higher than 32768
constexpr std::size_t kMiB = 1 << 20;

CUresult plain(std::size_t bytes, Piece& p) {
  return cuMemAlloc(&p.pointer, bytes);
}
void free_plain(const Piece& p) {
  MUST(cuMemFree(p.pointer));
}

CUresult pitch(std::size_t bytes, Piece& p) {
  std::size_t width = 0;
  return cuMemAllocPitch(&p.pointer, &width, kRow, bytes / kRow, 4);
}

CUDA_ARRAY3D_DESCRIPTOR rows(std::size_t bytes) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = kRow / 4;
  shape.Height = bytes / kRow;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  return shape;
}

CUresult array(std::size_t bytes, Piece& p) {
  const auto shape = rows(bytes);
  return cuArray3DCreate(reinterpret_cast<CUarray*>(&p.handle), &shape);
}
void free_array(const Piece& p) {
  MUST(cuArrayDestroy(static_cast<CUarray>(p.handle)));
}

CUresult mipmap(std::size_t bytes, Piece& p) {
  const auto shape = rows(bytes);
  return cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(&p.handle), &shape, 1);
}
void free_mipmap(const Piece& p) {
  MUST(cuMipmappedArrayDestroy(static_cast<CUmipmappedArray>(p.handle)));
}

CUresult managed(std::size_t bytes, Piece& p) {
  return cuMemAllocManaged(&p.pointer, bytes, CU_MEM_ATTACH_GLOBAL);
}

CUresult async(std::size_t bytes, Piece& p) {
  return cuMemAllocAsync(&p.pointer, bytes, nullptr);
}
void free_async(const Piece& p) {
  MUST(cuMemFreeAsync(p.pointer, nullptr));
  MUST(cuStreamSynchronize(nullptr));
}

CUmemAllocationProp on_device() {
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return kind;
}

CUmemoryPool own_pool() {
  static CUmemoryPool pool = [] {
    CUmemPoolProps kind{};
    kind.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool made = nullptr;
    MUST(cuMemPoolCreate(&made, &kind));
    return made;
  }();
  return pool;
}

CUresult pool(std::size_t bytes, Piece& p) {
  return cuMemAllocFromPoolAsync(&p.pointer, bytes, own_pool(), nullptr);
}

CUresult vmm(std::size_t bytes, Piece& p) {
  const auto kind = on_device();
  const CUresult made = cuMemCreate(&p.memory, bytes, &kind, 0);
  if (made != CUDA_SUCCESS) return made;
  MUST(cuMemAddressReserve(&p.pointer, bytes, 0, 0, 0));
  MUST(cuMemMap(p.pointer, bytes, 0, p.memory, 0));
  const CUmemAccessDesc access{kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  MUST(cuMemSetAccess(p.pointer, bytes, &access, 1));
  MUST(cuMemRelease(p.memory));  // lives on: it is mapped
  return CUDA_SUCCESS;
}
void free_vmm(const Piece& p) {
  MUST(cuMemUnmap(p.pointer, p.bytes));
  MUST(cuMemAddressFree(p.pointer, p.bytes));
}

CUresult graph(std::size_t bytes, Piece& p) {
  CUgraph made = nullptr;
  MUST(cuGraphCreate(&made, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS what{};
  what.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  what.bytesize = bytes;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUresult result = cuGraphAddMemAllocNode(&node, made, nullptr, 0, &what);
  if (result == CUDA_SUCCESS) result = cuGraphInstantiate(&exec, made, 0);
  if (result == CUDA_SUCCESS) result = cuGraphLaunch(exec, nullptr);
  if (result == CUDA_SUCCESS) result = cuStreamSynchronize(nullptr);
  p.pointer = what.dptr;
  if (exec != nullptr) cuGraphExecDestroy(exec);  // what it allocated stays until it is freed
  cuGraphDestroy(made);
  return result;
}
void free_graph(const Piece& p) {
  MUST(cuMemFree(p.pointer));
  MUST(cuDeviceGraphMemTrim(0));
}

}  // namespace

CUdevice ready() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  return device;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"alloc", 2 * kMiB, plain, free_plain},    {"small", 64 << 10, plain, free_plain},
      {"pitch", 2 * kMiB, pitch, free_plain},    {"array", 2 * kMiB, array, free_array},
      {"mipmap", 2 * kMiB, mipmap, free_mipmap}, {"managed", 2 * kMiB, managed, free_plain},
      {"vmm", 2 * kMiB, vmm, free_vmm},          {"async", 2 * kMiB, async, free_async},
      {"pool", 2 * kMiB, pool, free_async},      {"graph", 2 * kMiB, graph, free_graph},
  };
  return all;
}

AllocatedPieces take_all(const Family& family, std::size_t piece) {
  AllocatedPieces taken;
  while (piece >= family.granule) {
    Piece next;
    next.bytes = piece;
    const CUresult result = family.take(piece, next);
    if (result == CUDA_SUCCESS) {
      taken.pieces.push_back(next);
      taken.bytes += piece;
      continue;
    }
    taken.error = result;
    if (result != CUDA_ERROR_OUT_OF_MEMORY && taken.strange == CUDA_SUCCESS) taken.strange = result;
    piece /= 2;
  }
  return taken;
}

void give_all_back(const Family& family, AllocatedPieces& taken) {
  for (const auto& piece : taken.pieces) family.give_back(piece);
  taken.pieces.clear();
}
