// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: addresses, memory, and the mappings between them.
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/memory.hpp"
#include "sim/libcuda/shared_memory.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

struct Reservation {
  Reservation* next;
  uint64_t address, size;
};
constinit Reservation* reservations = nullptr;

bool inside_a_reservation(uint64_t address, uint64_t size) {
  for (const Reservation* at = reservations; at != nullptr; at = at->next) {
    if (address >= at->address && size <= at->size && address - at->address <= at->size - size)
      return true;
  }
  return false;
}

// A handle is the address of the Memory behind it.
Memory* memory_of(CUmemGenericAllocationHandle handle) {
  return find<Memory>(reinterpret_cast<Memory*>(handle));
}

void end_if_unused(Memory& memory) {
  if (memory.handles != 0 || memory.mappings != 0) return;
  unmap_memory(memory.data, memory.size);
  if (memory.device != nullptr) uncharge(*memory.device, memory.size);
  destroy(&memory);
}

bool is_host_location(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult check(const CUmemAllocationProp* prop, Device*& device) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  device = nullptr;
  if (is_host_location(prop->location.type)) return CUDA_SUCCESS;
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  device = device_at(prop->location.id);
  return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

// Calls visit for each mapping in the range; false when the range is not made of whole mappings.
template <class Visit>
bool each_mapping(uint64_t address, uint64_t size, Visit visit) {
  for (uint64_t passed = 0; passed < size;) {
    Block* block = block_at(address + passed);
    if (block == nullptr || block->space != Space::Mapped || block->address != address + passed)
      return false;
    if (block->size > size - passed) return false;
    passed += block->size;
    visit(*block);
  }
  return true;
}

}  // namespace

namespace entry {

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  if (ptr == nullptr || size == 0 || size % kGranule != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (size > kMaxAddressSpace || alignment > kMaxAddressSpace) return CUDA_ERROR_OUT_OF_MEMORY;
  auto* made = static_cast<Reservation*>(malloc(sizeof(Reservation)));
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t wanted = alignment > kGranule ? size + alignment : size;
  uint64_t address = reserve_addresses(wanted, Reach::Anywhere);
  if (address == 0) {
    free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (alignment > kGranule) {
    const uint64_t aligned = round_up(address, alignment);
    release_addresses(address, aligned - address);
    release_addresses(aligned + size, address + wanted - aligned - size);
    address = aligned;
  }
  *made = {reservations, address, size};
  reservations = made;
  *ptr = address;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  for (Reservation** at = &reservations; *at != nullptr; at = &(*at)->next) {
    Reservation* found = *at;
    if (found->address != ptr || found->size != size) continue;
    if (overlaps(ptr, size)) return CUDA_ERROR_INVALID_VALUE;
    *at = found->next;
    release_addresses(ptr, size);
    free(found);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags) {
  Device* device = nullptr;
  if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check(prop, device); result != CUDA_SUCCESS) return result;
  *granularity = kGranule;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  Device* device = nullptr;
  if (handle == nullptr || size == 0 || size % kGranule != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check(prop, device); result != CUDA_SUCCESS) return result;
  if (driver.sticky != CUDA_SUCCESS) return driver.sticky;
  if (device != nullptr) {
    if (const CUresult trouble = device_failure(*device); trouble != CUDA_SUCCESS) return trouble;
    if (const CUresult result = charge(*device, size); result != CUDA_SUCCESS) return result;
  }
  auto* memory = make<Memory>(nullptr);
  char* data = memory == nullptr ? nullptr : map_memory(size);
  if (data == nullptr) {
    if (memory != nullptr) destroy(memory);
    if (device != nullptr) uncharge(*device, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory->prop = *prop;
  memory->device = device;
  memory->size = size;
  memory->data = data;
  memory->handles = 1;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(memory);
  return CUDA_SUCCESS;
}

// The program owns the returned descriptor, which keeps the memory alive.
CUresult cuMemExportToShareableHandle(void* shareable_handle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handle_type,
                                      unsigned long long flags) {
  const Memory* memory = memory_of(handle);
  if (shareable_handle == nullptr || memory == nullptr || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if ((memory->prop.requestedHandleTypes & handle_type) == 0) return CUDA_ERROR_INVALID_VALUE;
  SharedHeader header{};
  const Device& device = memory->device != nullptr ? *memory->device : driver.device[0];
  const int fd = share_in_place(memory->data, memory->size, device, header);
  const int given = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (given < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  memcpy(shareable_handle, &given, sizeof given);
  return CUDA_SUCCESS;
}

// The exporter is already charged for it.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType sh_handle_type) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (sh_handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  SharedHeader header{};
  char* data = map_shared(static_cast<int>(reinterpret_cast<intptr_t>(os_handle)), header);
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* memory = make<Memory>(nullptr);
  if (memory == nullptr) {
    unmap_memory(data, header.size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory->prop.requestedHandleTypes = sh_handle_type;
  memory->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  for (int i = 0; i < driver.device_count; ++i) {
    if (driver.device[i].gpu == header.gpu) memory->prop.location.id = i;
  }
  memory->size = header.size;
  memory->data = data;
  memory->handles = 1;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(memory);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Memory* memory = memory_of(handle);
  if (memory == nullptr || memory->handles == 0) return CUDA_ERROR_INVALID_VALUE;
  --memory->handles;
  end_if_unused(*memory);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  Memory* memory = memory_of(handle);
  if (memory == nullptr || size == 0 || size % kGranule != 0 || offset != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (size > memory->size || ptr % kGranule != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!inside_a_reservation(ptr, size) || overlaps(ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  Block wanted{};
  wanted.address = ptr;
  wanted.size = size;
  wanted.data = memory->data;
  wanted.space = Space::Mapped;
  wanted.device = memory->device != nullptr ? memory->device : &driver.device[0];
  wanted.memory = memory;
  if (add_block(wanted) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  ++memory->mappings;
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  if (!each_mapping(ptr, size, [](Block&) {}) || size == 0) return CUDA_ERROR_INVALID_VALUE;
  for (uint64_t passed = 0; passed < size;) {
    Block* block = block_at(ptr + passed);
    Memory& memory = *block->memory;
    passed += block->size;
    release(*block);
    --memory.mappings;
    end_if_unused(memory);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  if (desc == nullptr || count == 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!each_mapping(ptr, size, [](Block&) {})) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        device_at(desc[i].location.id) == nullptr)
      return CUDA_ERROR_INVALID_DEVICE;
    const bool accessible = desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    each_mapping(ptr, size, [accessible](Block& block) { block.accessible = accessible; });
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  const Block* block = block_at(ptr);
  if (flags == nullptr || location == nullptr || block == nullptr || block->space != Space::Mapped)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = block->accessible ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  const Memory* memory = memory_of(handle);
  if (prop == nullptr || memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *prop = memory->prop;
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  const Block* block = block_at(reinterpret_cast<uint64_t>(addr));
  if (handle == nullptr || block == nullptr || block->space != Space::Mapped)
    return CUDA_ERROR_INVALID_VALUE;
  ++block->memory->handles;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(block->memory);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
