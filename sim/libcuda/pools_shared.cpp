// SPDX-License-Identifier: Apache-2.0
// Pools shared between processes. A pool is shared as a descriptor, each allocation as a piece of
// data. The importer is not charged and takes nothing from the pool.
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/ipc.hpp"
#include "sim/libcuda/pools.hpp"
#include "sim/libcuda/shared_memory.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

constexpr uint64_t kPoolMagic = 0x6c6f6f5065726853;

struct PoolFile {
  uint64_t magic, id;
  uint32_t gpu;
  int32_t gi;
};

struct PointerData {
  IpcHandle memory;
  uint64_t pool;
};
static_assert(sizeof(PointerData) <= sizeof(CUmemPoolPtrExportData));

int make_pool_file(Pool& pool) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "gantry-sim-pool", kCloseOnExec));
  if (fd < 0) return -1;
  const uint64_t own = static_cast<uint64_t>(getpid()) << 32U;
  const PoolFile about = {kPoolMagic, own + ++driver.next_id, pool.device->gpu, pool.device->gi};
  if (pwrite(fd, &about, sizeof about, 0) == static_cast<ssize_t>(sizeof about)) {
    pool.shared_id = about.id;
    return fd;
  }
  close(fd);
  return -1;
}

Device* device_of(const PoolFile& about) {
  for (int i = 0; i < driver.device_count; ++i) {
    Device& device = driver.device[i];
    if (device.gpu == about.gpu && device.gi == about.gi) return &device;
  }
  return nullptr;
}

}  // namespace

namespace entry {

CUresult cuMemPoolExportToShareableHandle(void* handle, CUmemoryPool pool,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  Pool* known = find<Pool>(pool);
  if (handle == nullptr || known == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (known->imported || (known->handle_types & type) == 0) return CUDA_ERROR_INVALID_VALUE;
  if (known->shared_id == 0) known->file = make_pool_file(*known);
  const int given = known->shared_id == 0 ? -1 : fcntl(known->file, F_DUPFD_CLOEXEC, 0);
  if (given < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  memcpy(handle, &given, sizeof given);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  if (pool == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  PoolFile about{};
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  if (pread(fd, &about, sizeof about, 0) != static_cast<ssize_t>(sizeof about) ||
      about.magic != kPoolMagic)
    return CUDA_ERROR_INVALID_VALUE;
  Device* device = device_of(about);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Pool* made = make_pool(*device, 0);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->imported = true;
  made->shared_id = about.id;
  *pool = handle_of<CUmemoryPool>(made);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr pointer) {
  const Block* block = block_at(pointer);
  if (data == nullptr || block == nullptr || block->space != Space::Pooled)
    return CUDA_ERROR_INVALID_VALUE;
  if (block->pool->shared_id == 0) return CUDA_ERROR_INVALID_VALUE;
  PointerData made{};
  made.pool = block->pool->shared_id;
  if (const CUresult result = export_block(*block, made.memory); result != CUDA_SUCCESS)
    return result;
  *data = {};
  memcpy(data, &made, sizeof made);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* pointer, CUmemoryPool pool,
                                CUmemPoolPtrExportData* data) {
  Pool* known = find<Pool>(pool);
  if (pointer == nullptr || data == nullptr || known == nullptr || !known->imported)
    return CUDA_ERROR_INVALID_VALUE;
  PointerData given{};
  memcpy(&given, data, sizeof given);
  if (given.pool != known->shared_id) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  Block* block = nullptr;
  const CUresult result = import_block(given.memory, *context, block);
  if (result != CUDA_SUCCESS) return result;
  block->pool = known;
  *pointer = block->address + given.memory.offset;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
