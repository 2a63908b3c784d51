// SPDX-License-Identifier: Apache-2.0
// What the driver itself does, without any share: what it charges for an allocation of each family
// (free memory before and after), and what the calls cost that the fence makes.
#include "families.hpp"
#include "said.hpp"

#include <algorithm>
#include <initializer_list>

namespace {

constexpr std::size_t kKiB = 1 << 10;
constexpr std::size_t kMiB = 1 << 20;

std::size_t free_bytes() {
  std::size_t bytes = 0;
  std::size_t total = 0;
  MUST(cuMemGetInfo(&bytes, &total));
  return bytes;
}

void charge(const Family& family, std::size_t bytes) {
  const auto before = free_bytes();
  Piece piece;
  piece.bytes = bytes;
  const CUresult result = family.take(bytes, piece);
  const auto after = free_bytes();
  say("%-8s %9zu KiB: %s %6zu KiB", family.name, bytes / kKiB,
      result == CUDA_SUCCESS ? "charged" : "refused", (before - after) / kKiB);
  if (result == CUDA_SUCCESS) family.give_back(piece);
}

void charges() {
  for (const auto& family : families()) {
    for (const std::size_t bytes :
         {64 * kKiB, kMiB, kMiB + 16 * kKiB, 2 * kMiB, 2 * kMiB + 16 * kKiB, 33 * kMiB})
      charge(family, bytes);
  }
}

template <class Call>
void cost(const char* what, Call call) {
  constexpr int kEach = 20000;
  double best = 1e300;
  for (int round = 0; round < 5; ++round) {
    const double start = now_ms();
    for (int i = 0; i < kEach; ++i) call();
    best = std::min(best, (now_ms() - start) * 1e6 / kEach);
  }
  say("%-36s %8.1f ns", what, best);
}

void costs() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmemoryPool pool = nullptr;
  CUdevice device = 0;
  CUstreamCaptureStatus capturing{};
  cuuint64_t value = 0;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  MUST(cuDeviceGetDefaultMemPool(&pool, 0));
  cost("cuEventRecord, untimed", [&] { cuEventRecord(event, stream); });
  MUST(cuStreamSynchronize(stream));
  cost("cuEventQuery", [&] { cuEventQuery(event); });
  cost("cuStreamIsCapturing", [&] { cuStreamIsCapturing(stream, &capturing); });
  cost("cuCtxGetDevice", [&] { cuCtxGetDevice(&device); });
  cost("cuMemPoolGetAttribute",
       [&] { cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value); });
  cost("cuDeviceGetGraphMemAttribute",
       [&] { cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value); });
  cost("cuMemGetInfo", [] { free_bytes(); });
}

}  // namespace

int main() {
  ready();
  charges();
  costs();
  return 0;
}
