// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/memory.hpp"

#include "sim/libcuda/chunks.hpp"
#include "sim/libcuda/pools.hpp"
#include "sim/libcuda/shared_memory.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace gantry::sim::cuda {
namespace {

// Sorted by address.
struct Blocks {
  Block** block;
  size_t count, capacity;
};
constinit Blocks blocks{};

// Index of the first block that begins behind the address.
size_t behind(uint64_t address) {
  size_t low = 0;
  size_t high = blocks.count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (blocks.block[middle]->address <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool usable(const Block& block) {
  return (block.space != Space::Mapped && block.space != Space::Graph) || block.accessible;
}

}  // namespace

uint64_t reserve_addresses(uint64_t size, Reach reach) {
  if (size > 2 * kMaxAddressSpace) return 0;
  const uint64_t length = round_up(size, 4096);
  const uint64_t slack = length >= kGranule ? kGranule : 0;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (reach == Reach::Below4GiB) flags |= MAP_32BIT;
  void* at = mmap(nullptr, length + slack, PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED) return 0;
  const auto start = reinterpret_cast<uint64_t>(at);
  if (slack == 0) return start;
  const uint64_t aligned = round_up(start, kGranule);
  release_addresses(start, aligned - start);
  release_addresses(aligned + length, start + slack - aligned);
  return aligned;
}

void release_addresses(uint64_t address, uint64_t size) {
  if (size != 0) munmap(reinterpret_cast<void*>(address), round_up(size, 4096));
}

char* map_memory(uint64_t size) {
  void* at = mmap(nullptr, round_up(size, 4096), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

void unmap_memory(char* data, uint64_t size) {
  if (data == nullptr) return;
  end_sharing(data);
  munmap(data, round_up(size, 4096));
}

Block* block_at(uint64_t address) {
  const size_t index = behind(address);
  if (index == 0) return nullptr;
  Block* block = blocks.block[index - 1];
  return address - block->address < block->size ? block : nullptr;
}

bool overlaps(uint64_t address, uint64_t size) {
  if (block_at(address) != nullptr) return true;
  const Block* next = block_after(address);
  return next != nullptr && next->address - address < size;
}

Block* block_after(uint64_t address) {
  const size_t index = behind(address);
  return index < blocks.count ? blocks.block[index] : nullptr;
}

Block* add_block(const Block& block) {
  if (blocks.count == blocks.capacity) {
    const size_t wanted = blocks.capacity == 0 ? 64 : blocks.capacity * 2;
    void* grown = realloc(blocks.block, wanted * sizeof(Block*));
    if (grown == nullptr) return nullptr;
    blocks.block = static_cast<Block**>(grown);
    blocks.capacity = wanted;
  }
  auto* added = static_cast<Block*>(malloc(sizeof(Block)));
  if (added == nullptr) return nullptr;
  *added = block;
  added->id = ++driver.next_id;
  const size_t index = behind(block.address);
  memmove(blocks.block + index + 1, blocks.block + index, (blocks.count - index) * sizeof(Block*));
  blocks.block[index] = added;
  ++blocks.count;
  return added;
}

void remove_block(Block* block) {
  const size_t index = behind(block->address) - 1;
  memmove(blocks.block + index, blocks.block + index + 1,
          (blocks.count - index - 1) * sizeof(Block*));
  --blocks.count;
  free(block);
}

uint64_t piece_at(uint64_t address, uint64_t wanted, char*& data) {
  const Block* block = block_at(address);
  if (block == nullptr || !usable(*block)) return 0;
  const uint64_t offset = address - block->address;
  data = block->data + offset;
  const uint64_t left = block->size - offset;
  return left < wanted ? left : wanted;
}

// A range may cross mappings, but not two adjacent allocations.
bool reachable(uint64_t address, uint64_t bytes) {
  const Block* first = block_at(address);
  if (first == nullptr || !usable(*first)) return false;
  uint64_t passed = first->size - (address - first->address);
  while (passed < bytes) {
    const Block* next = first->space == Space::Mapped ? block_at(address + passed) : nullptr;
    if (next == nullptr || next->space != Space::Mapped || !usable(*next)) return false;
    passed += next->size;
  }
  return true;
}

CUresult allocate(Context& context, uint64_t bytes, Reach reach, Block*& block) {
  if (bytes <= kSmall && reach == Reach::Anywhere) return allocate_small(context, bytes, block);
  Device& device = *context.device;
  if (bytes > device.total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t charged = round_up(bytes, kGranule);
  if (const CUresult result = charge(device, charged); result != CUDA_SUCCESS) return result;
  Block wanted{};
  wanted.address = reserve_addresses(charged, reach);
  wanted.data = map_memory(charged);
  wanted.size = bytes;
  wanted.space = Space::Device;
  wanted.charged = charged;
  wanted.context = &context;
  wanted.device = &device;
  block = wanted.address == 0 || wanted.data == nullptr ? nullptr : add_block(wanted);
  if (block != nullptr) return CUDA_SUCCESS;
  release_addresses(wanted.address, wanted.address == 0 ? 0 : charged);
  unmap_memory(wanted.data, charged);
  uncharge(device, charged);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void release(Block& block) {
  switch (block.space) {
    case Space::Device:
      if (block.chunk != nullptr) {
        release_small(block);
        break;
      }
      release_addresses(block.address, block.charged);
      unmap_memory(block.data, block.charged);
      uncharge(*block.device, block.charged);
      break;
    case Space::Pooled:
      release_addresses(block.address, block.size);
      unmap_memory(block.data, block.size);
      leave_pool(*block.pool, block.charged);
      break;
    case Space::Managed:
      unmap_memory(block.data, block.size);
      uncharge(*block.device, block.charged);
      break;
    case Space::Host: unmap_memory(block.data, block.size); break;
    case Space::Graph:
      release_addresses(block.address, block.charged);
      unmap_memory(block.data, block.charged);
      break;
    case Space::Imported:
      release_addresses(block.address, block.size);
      unmap_memory(block.data, block.size);
      break;
    case Space::Registered:
    case Space::Mapped: break;
  }
  remove_block(&block);
}

void free_context_memory(Context& context) {
  uint64_t address = 0;
  while (Block* block = block_after(address)) {
    address = block->address;
    if (block->context == &context) release(*block);
  }
}

}  // namespace gantry::sim::cuda
