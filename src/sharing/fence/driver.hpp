// SPDX-License-Identifier: Apache-2.0
// The driver's entry points as the fence sees them. All can be called in the real library (real);
// the hooked ones are also defined by the fence under the same name.
#pragma once

#include "gpu/abi/cuda.h"

extern "C" {
#define FENCE_ENTRY(symbol, parameters) CUresult symbol parameters;
#include "sharing/fence/entries.def"

// A definition inherits the visibility of this declaration, so that every hook is exported.
#define FENCE_EXPORTED extern __attribute__((visibility("default")))
#define FENCE_HOOK(symbol) FENCE_EXPORTED decltype(::symbol) symbol;
#define FENCE_HOOK_PTSZ(symbol)             \
  FENCE_EXPORTED decltype(::symbol) symbol; \
  FENCE_EXPORTED decltype(::symbol) symbol##_ptsz;
#define FENCE_HOOK_PTDS(symbol)             \
  FENCE_EXPORTED decltype(::symbol) symbol; \
  FENCE_EXPORTED decltype(::symbol) symbol##_ptds;
#include "sharing/fence/hooks.def"
}

namespace gantry::fence {

// The real library's functions. A function that it does not have returns CUDA_ERROR_NOT_SUPPORTED.
struct RealDriver {
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) decltype(&::symbol) symbol;
#define CUDA_ENTRY_PTSZ(symbol, name, since, parameters, arguments) \
  decltype(&::symbol) symbol;                                       \
  decltype(&::symbol) symbol##_ptsz;
#define CUDA_ENTRY_PTDS(symbol, name, since, parameters, arguments) \
  decltype(&::symbol) symbol;                                       \
  decltype(&::symbol) symbol##_ptds;
#include "gpu/abi/cuda_entries.def"
#define FENCE_ENTRY(symbol, parameters) decltype(&::symbol) symbol;
#include "sharing/fence/entries.def"
};

namespace detail {
struct RealState {
  int ready;  // 0, 1: being filled, 2
  RealDriver entry;
};
extern RealState real_state;
void resolve_real();
}  // namespace detail

inline const RealDriver& real() {
  if (__builtin_expect(__atomic_load_n(&detail::real_state.ready, __ATOMIC_ACQUIRE) != 2, 0))
    detail::resolve_real();
  return detail::real_state.entry;
}

}  // namespace gantry::fence
