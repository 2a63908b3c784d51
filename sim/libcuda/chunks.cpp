// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/chunks.hpp"

#include <stdlib.h>
#include <string.h>

namespace gantry::sim::cuda {

constexpr uint64_t kUnits = kGranule / kUnit;

struct Chunk {
  Chunk* next;
  Context* context;
  uint64_t address;
  char* data;
  uint64_t used;          // units
  uint8_t taken[kUnits];  // 1: in use
};

namespace {

constinit Chunk* chunks = nullptr;

// First run of free units that is long enough; kUnits when there is none.
uint64_t find_run(const Chunk& chunk, uint64_t units) {
  uint64_t run = 0;
  for (uint64_t i = 0; i < kUnits; ++i) {
    run = chunk.taken[i] != 0 ? 0 : run + 1;
    if (run == units) return i + 1 - units;
  }
  return kUnits;
}

void end_chunk(Chunk* chunk) {
  for (Chunk** at = &chunks; *at != nullptr; at = &(*at)->next) {
    if (*at != chunk) continue;
    *at = chunk->next;
    break;
  }
  if (chunk->address != 0) release_addresses(chunk->address, kGranule);
  unmap_memory(chunk->data, kGranule);
  uncharge(*chunk->context->device, kGranule);
  free(chunk);
}

CUresult begin_chunk(Context& context, Chunk*& chunk) {
  if (const CUresult result = charge(*context.device, kGranule); result != CUDA_SUCCESS)
    return result;
  chunk = static_cast<Chunk*>(calloc(1, sizeof(Chunk)));
  if (chunk == nullptr) {
    uncharge(*context.device, kGranule);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  chunk->context = &context;
  chunk->address = reserve_addresses(kGranule, Reach::Anywhere);
  chunk->data = map_memory(kGranule);
  chunk->next = chunks;
  chunks = chunk;
  if (chunk->address != 0 && chunk->data != nullptr) return CUDA_SUCCESS;
  end_chunk(chunk);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

CUresult allocate_small(Context& context, uint64_t bytes, Block*& block) {
  const uint64_t units = round_up(bytes, kUnit) / kUnit;
  Chunk* chunk = chunks;
  uint64_t first = kUnits;
  for (; chunk != nullptr; chunk = chunk->next) {
    if (chunk->context == &context) first = find_run(*chunk, units);
    if (first != kUnits) break;
  }
  if (chunk == nullptr) {
    if (const CUresult result = begin_chunk(context, chunk); result != CUDA_SUCCESS) return result;
    first = 0;
  }
  Block wanted{};
  wanted.address = chunk->address + first * kUnit;
  wanted.data = chunk->data + first * kUnit;
  wanted.size = bytes;
  wanted.space = Space::Device;
  wanted.context = &context;
  wanted.device = context.device;
  wanted.chunk = chunk;
  block = add_block(wanted);
  if (block == nullptr) {
    if (chunk->used == 0) end_chunk(chunk);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memset(chunk->taken + first, 1, units);
  chunk->used += units;
  return CUDA_SUCCESS;
}

void release_small(Block& block) {
  Chunk* chunk = block.chunk;
  const uint64_t first = (block.address - chunk->address) / kUnit;
  const uint64_t units = round_up(block.size, kUnit) / kUnit;
  memset(chunk->taken + first, 0, units);
  chunk->used -= units;
  if (chunk->used == 0) end_chunk(chunk);
}

uint64_t chunk_address(const Block& block) {
  return block.chunk->address;
}

}  // namespace gantry::sim::cuda
