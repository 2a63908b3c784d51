// SPDX-License-Identifier: Apache-2.0
// Memory shared between processes. Shared memory moves into a file without a name, which the other
// process opens through /proc or receives as a descriptor. The exporter is charged for it.
#include "sim/libcuda/ipc.hpp"

#include "sim/libcuda/chunks.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/shared_memory.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

constexpr uint64_t kHandleMagic = 0x636e47657268536d;

static_assert(sizeof(IpcHandle) <= sizeof(CUipcMemHandle));

// The open file behind a handle of another process; -1 if it does not exist or we may not open it.
int open_shared(const IpcHandle& handle) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.pid, handle.fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  SharedHeader header{};
  if (read_shared_header(fd, header) && header.id == handle.id) return fd;
  close(fd);
  return -1;
}

Block* imported(uint64_t id) {
  uint64_t address = 0;
  while (Block* block = block_after(address)) {
    address = block->address;
    if (block->space == Space::Imported && block->charged == id) return block;
  }
  return nullptr;
}

}  // namespace

CUresult export_block(const Block& block, IpcHandle& handle) {
  const bool small = block.chunk != nullptr;
  const uint64_t size = small ? kGranule : block.charged;
  const uint64_t base = small ? chunk_address(block) : block.address;
  SharedHeader header{};
  const int fd = share_in_place(block.data - (block.address - base), size, *block.device, header);
  if (fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  handle = {kHandleMagic,         getpid(), fd, block.device->gpu, block.device->gi, block.size,
            block.address - base, header.id};
  return CUDA_SUCCESS;
}

CUresult import_block(const IpcHandle& handle, Context& context, Block*& block) {
  if (handle.magic != kHandleMagic) return CUDA_ERROR_INVALID_VALUE;
  if (handle.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;  // not in the same process
  // A second open returns the same mapping and counts it.
  block = imported(handle.id);
  if (block != nullptr) {
    ++block->flags;
    return CUDA_SUCCESS;
  }
  const int fd = open_shared(handle);
  if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
  SharedHeader header{};
  Block wanted{};
  wanted.data = map_shared(fd, header);
  close(fd);
  wanted.size = header.size;
  wanted.space = Space::Imported;
  wanted.flags = 1;
  wanted.charged = handle.id;
  wanted.context = &context;
  wanted.device = context.device;
  wanted.address = wanted.data == nullptr ? 0 : reserve_addresses(wanted.size, Reach::Anywhere);
  block = wanted.address == 0 ? nullptr : add_block(wanted);
  if (block != nullptr) return CUDA_SUCCESS;
  release_addresses(wanted.address, wanted.address == 0 ? 0 : wanted.size);
  unmap_memory(wanted.data, wanted.size);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

namespace entry {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  const Block* block = block_at(pointer);
  if (block == nullptr || block->space != Space::Device) return CUDA_ERROR_INVALID_VALUE;
  IpcHandle made{};
  if (const CUresult result = export_block(*block, made); result != CUDA_SUCCESS) return result;
  *handle = {};
  memcpy(handle, &made, sizeof made);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  IpcHandle given{};
  memcpy(&given, &handle, sizeof given);
  if (pointer == nullptr || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
      given.magic != kHandleMagic)
    return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  Block* block = nullptr;
  const CUresult result = import_block(given, *context, block);
  if (result == CUDA_SUCCESS) *pointer = block->address + given.offset;
  return result;
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return entry::cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  Block* block = block_at(pointer);
  if (block == nullptr || block->space != Space::Imported || block->pool != nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  if (--block->flags == 0) release(*block);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
