// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: only the driver knows which function a name means for a CUDA version and a kind
// of default stream. It is called with the caller's arguments, and its answer is looked up by
// address: if the function is hooked, the caller gets the hook, which has the same interface.
#include "sharing/fence/driver.hpp"

#include <stddef.h>

namespace gantry::fence {
namespace {

struct Hook {
  size_t real;  // offset in RealDriver
  void* ours;
};

#define FENCE_ROW(symbol) {offsetof(RealDriver, symbol), reinterpret_cast<void*>(&::symbol)},
const Hook hooks[] = {
#define FENCE_HOOK(symbol) FENCE_ROW(symbol)
#define FENCE_HOOK_PTSZ(symbol) FENCE_ROW(symbol) FENCE_ROW(symbol##_ptsz)
#define FENCE_HOOK_PTDS(symbol) FENCE_ROW(symbol) FENCE_ROW(symbol##_ptds)
#include "sharing/fence/hooks.def"
};

// A program calls this only a few hundred times, so an index would not be worth its memory.
void* ours_for(void* function) {
  const auto* entries = reinterpret_cast<const char*>(&real());
  for (const Hook& hook : hooks) {
    void* const* theirs = reinterpret_cast<void* const*>(entries + hook.real);
    if (*theirs == function) return hook.ours;
  }
  return function;
}

}  // namespace
}  // namespace gantry::fence

using gantry::fence::ours_for;
using gantry::fence::real;

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t flags) {
  const CUresult result = real().cuGetProcAddress(symbol, function, cuda_version, flags);
  if (result == CUDA_SUCCESS && function != nullptr) *function = ours_for(*function);
  return result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version,
                             cuuint64_t flags, CUdriverProcAddressQueryResult* symbol_status) {
  const CUresult result =
      real().cuGetProcAddress_v2(symbol, function, cuda_version, flags, symbol_status);
  if (result == CUDA_SUCCESS && function != nullptr) *function = ours_for(*function);
  return result;
}
