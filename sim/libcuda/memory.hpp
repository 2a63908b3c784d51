// SPDX-License-Identifier: Apache-2.0
// Addresses and the memory behind them. A device address is a reserved range that the CPU cannot
// touch, as on a real machine; the bytes are elsewhere, committed by the kernel page by page as
// they are used.
#pragma once

#include "sim/libcuda/driver.hpp"

#include <stddef.h>
#include <stdint.h>

namespace gantry::sim::cuda {

struct Chunk;

enum class Space : uint8_t {
  Device,      // cuMemAlloc and similar calls
  Pooled,      // stream-ordered: charged by its pool
  Managed,     // one address for both sides
  Host,        // page-locked, ours
  Registered,  // page-locked, the program's own
  Mapped,      // a mapping of cuMemCreate's memory
  Graph,       // of a graph's node: accessible from its launch to its free
  Imported,    // owned by another process, which is charged for it
};

struct Block {
  uint64_t address;
  uint64_t size;
  char* data;
  Space space;
  bool accessible;  // Mapped: cuMemSetAccess was called; Graph: allocated
  uint32_t flags;
  uint64_t charged;
  uint64_t id;
  Context* context;  // nullptr: belongs to the process
  Device* device;    // nullptr: host memory
  Chunk* chunk;      // small allocations share one
  Pool* pool;
  Memory* memory;
};

constexpr uint64_t kGranule = 2ULL << 20U;  // unit in which the card's memory is allocated

constexpr uint64_t kMaxAddressSpace =
    1ULL << 46U;  // no process has more than this; sums do not overflow

inline uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

enum class Reach : uint8_t { Anywhere, Below4GiB };

// Reserves address space without memory; 0 if there is none. Aligned to the granule if it is at
// least that large.
uint64_t reserve_addresses(uint64_t size, Reach reach);
void release_addresses(uint64_t address, uint64_t size);
// Maps memory without a reservation; nullptr if the kernel has none.
char* map_memory(uint64_t size);
void unmap_memory(char* data, uint64_t size);

// The block that contains the address.
Block* block_at(uint64_t address);
bool overlaps(uint64_t address, uint64_t size);
// Stores a copy; nullptr if there is no memory.
Block* add_block(const Block& block);
void remove_block(Block* block);
// The next block after `address`, for walking all of them.
Block* block_after(uint64_t address);

// The number of contiguous bytes from the address on, at most `wanted`, and their place; 0 if none
// may be used.
uint64_t piece_at(uint64_t address, uint64_t wanted, char*& data);
// Whether the whole range may be used.
bool reachable(uint64_t address, uint64_t bytes);

// Allocates device memory of a context and charges it.
CUresult allocate(Context& context, uint64_t bytes, Reach reach, Block*& block);
void release(Block& block);
void free_context_memory(Context& context);
void free_context_arrays(const Context& context);

}  // namespace gantry::sim::cuda
