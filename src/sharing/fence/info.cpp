// SPDX-License-Identifier: Apache-2.0
// Hooks of the functions that report the size of the GPU's memory: they report the size of the
// share.
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/overhead.hpp"

namespace gantry::fence {
namespace {

uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// Does nothing without a limit. The GPU may have less free memory than the share.
template <class Size>
void show_share(uint32_t gpu, Size* free, Size* total) {
  ShareMemory share{};
  if (!share_memory(gpu, share)) return;
  if (free != nullptr) *free = static_cast<Size>(smaller(*free, share.free));
  if (total != nullptr) *total = static_cast<Size>(smaller(*total, share.total));
}

}  // namespace
}  // namespace gantry::fence

using namespace gantry::fence;

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  refresh_if_due(current_gpu());
  const CUresult result = real().cuMemGetInfo_v2(free, total);
  if (result == CUDA_SUCCESS) show_share(current_gpu(), free, total);
  return result;
}
CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  refresh_if_due(current_gpu());
  const CUresult result = real().cuMemGetInfo(free, total);
  if (result == CUDA_SUCCESS) show_share(current_gpu(), free, total);
  return result;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  const CUresult result = real().cuDeviceTotalMem_v2(bytes, dev);
  if (result == CUDA_SUCCESS) show_share<size_t>(gpu_of(dev), nullptr, bytes);
  return result;
}
CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice dev) {
  const CUresult result = real().cuDeviceTotalMem(bytes, dev);
  if (result == CUDA_SUCCESS) show_share<unsigned int>(gpu_of(dev), nullptr, bytes);
  return result;
}
