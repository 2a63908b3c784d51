// SPDX-License-Identifier: Apache-2.0
// Every way to get device memory from the driver, one shape: take some bytes, give them back.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>
#include <vector>

struct Piece {
  CUdeviceptr pointer = 0;
  void* handle = nullptr;  // array, mipmapped array, graph
  CUmemGenericAllocationHandle memory = 0;
  std::size_t bytes = 0;
};

struct Family {
  const char* name;
  std::size_t granule;  // the smallest piece that is asked for
  CUresult (*take)(std::size_t bytes, Piece& piece);
  void (*give_back)(const Piece& piece);
};

// The device's first GPU with its primary context current.
CUdevice ready();
const std::vector<Family>& families();

// Takes pieces of `piece` bytes and, each time one is refused, of half as many, until the family's
// granule is refused. `error` is the last refusal, `strange` the first one that is not 2.
struct AllocatedPieces {
  std::vector<Piece> pieces;
  std::size_t bytes = 0;
  CUresult error = CUDA_SUCCESS;
  CUresult strange = CUDA_SUCCESS;
};
AllocatedPieces take_all(const Family& family, std::size_t piece);
void give_all_back(const Family& family, AllocatedPieces& taken);
