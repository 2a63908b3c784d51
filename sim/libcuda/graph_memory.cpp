// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate. A card keeps the memory that its graphs needed at the same time,
// until cuDeviceGraphMemTrim frees it.
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/graph.hpp"
#include "sim/libcuda/memory.hpp"
#include "sim/libcuda/pools.hpp"

#include <string.h>

namespace gantry::sim::cuda {
namespace {

Block* graph_block(uint64_t address) {
  Block* block = block_at(address);
  return block != nullptr && block->space == Space::Graph && block->address == address ? block
                                                                                       : nullptr;
}

uint64_t* graph_counter(Device& device, CUgraphMem_attribute which) {
  switch (which) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: return &device.graph_used;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: return &device.graph_used_high;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: return &device.graph_reserved;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: return &device.graph_reserved_high;
  }
  return nullptr;
}

}  // namespace

// Block::flags counts the nodes that may still allocate it.
CUresult reserve_for(Node& node, CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  if (params.bytesize == 0 || params.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  Device* device = device_at(params.poolProps.location.id);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (params.bytesize > device->total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  Block wanted{};
  wanted.size = params.bytesize;
  wanted.charged = round_up(params.bytesize, kGranule);
  wanted.address = reserve_addresses(wanted.charged, Reach::Anywhere);
  wanted.data = map_memory(wanted.charged);
  wanted.space = Space::Graph;
  wanted.flags = 1;
  wanted.device = device;
  if (wanted.address == 0 || wanted.data == nullptr || add_block(wanted) == nullptr) {
    release_addresses(wanted.address, wanted.address == 0 ? 0 : wanted.charged);
    unmap_memory(wanted.data, wanted.charged);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  params.dptr = wanted.address;
  node.alloc = params;
  return CUDA_SUCCESS;
}

void keep_reserved(const Node& node) {
  if (Block* block = graph_block(node.alloc.dptr)) ++block->flags;
}

void leave_reserved(const Node& node) {
  Block* block = graph_block(node.alloc.dptr);
  if (block == nullptr) return;
  if (block->flags > 0) --block->flags;
  if (block->flags == 0 && !block->accessible) release(*block);
}

bool is_graph_memory_live(uint64_t address) {
  const Block* block = graph_block(address);
  return block != nullptr && block->accessible;
}

CUresult take_graph_memory(uint64_t address) {
  Block* block = graph_block(address);
  if (block == nullptr || block->accessible) return CUDA_ERROR_INVALID_VALUE;
  Device& device = *block->device;
  const uint64_t used = device.graph_used + block->charged;
  const uint64_t reserved = round_up(used, kPoolStep);
  if (reserved > device.graph_reserved) {
    if (const CUresult result = charge(device, reserved - device.graph_reserved);
        result != CUDA_SUCCESS)
      return result;
    device.graph_reserved = reserved;
    if (reserved > device.graph_reserved_high) device.graph_reserved_high = reserved;
  }
  device.graph_used = used;
  if (used > device.graph_used_high) device.graph_used_high = used;
  block->accessible = true;
  return CUDA_SUCCESS;
}

bool free_graph_memory(uint64_t address) {
  Block* block = graph_block(address);
  if (block == nullptr || !block->accessible) return false;
  block->accessible = false;
  block->device->graph_used -= block->charged;
  if (block->flags == 0) release(*block);
  return true;
}

void trim_graph_memory(Device& device) {
  const uint64_t needed = round_up(device.graph_used, kPoolStep);
  if (device.graph_reserved <= needed) return;
  uncharge(device, device.graph_reserved - needed);
  device.graph_reserved = needed;
}

namespace entry {

CUresult cuDeviceGraphMemTrim(CUdevice dev) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  trim_graph_memory(*device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void* value) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const uint64_t* from = graph_counter(*device, attribute);
  if (from == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(value, from, sizeof *from);
  return CUDA_SUCCESS;
}

// Only the high watermarks can be set, and only reset.
CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void* value) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  uint64_t wanted = 1;
  if (value != nullptr) memcpy(&wanted, value, sizeof wanted);
  if (wanted != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    device->graph_used_high = device->graph_used;
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    device->graph_reserved_high = device->graph_reserved;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
