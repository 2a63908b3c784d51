// SPDX-License-Identifier: Apache-2.0
// Hooks of contexts. A context uses memory that no allocation shows; the host can measure it and is
// asked to do so. When a context is destroyed, everything that was allocated in it is freed.
#include "sharing/fence/contexts.hpp"

#include "sharing/fence/allocations.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gate.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/graphs.hpp"
#include "sharing/fence/handle_table.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/overhead.hpp"
#include "sharing/fence/pools.hpp"

namespace gantry::fence {
namespace {

struct Contexts {
  Lock primary;                  // serialises retain and release of primary contexts
  HandleTable made;              // by handle: Entry.count is the number of uses
  CUcontext of[FENCE_MAX_GPUS];  // primary, by device
};
constinit Contexts contexts{};

// A GPU outside of the share cannot be used.
bool foreign(CUdevice device) {
  return attached() && gpu_of(device) == kNoGpu && is_device(device);
}

void after_end(CUcontext context, uint32_t gpu) {
  drop_allocations_of(context);
  pools_changed();
  settle_graphs(gpu);
  release_context(gpu);
  overhead_changed(gpu);
}

template <class Call>
CUresult create_context(CUcontext* context, CUdevice device, Call call) {
  if (!attached() || context == nullptr) return call(context);
  if (foreign(device)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  const uint32_t gpu = gpu_of(device);
  if (!reserve_context(gpu)) return refused(gpu, 0);
  CUcontext made = nullptr;
  const CUresult result = call(&made);
  context_created(gpu);
  gate_context_changed();
  if (result != CUDA_SUCCESS) {
    release_context(gpu);
    return result;
  }
  contexts.made.put({.key = reinterpret_cast<uint64_t>(made),
                     .bytes = 0,
                     .other = 0,
                     .context = made,
                     .gpu = gpu,
                     .count = 1});
  *context = made;
  overhead_changed(gpu);
  return result;
}

template <class Call>
CUresult destroy(CUcontext context, Call call) {
  if (!attached()) return call();
  Entry entry{};
  const bool known = contexts.made.take(reinterpret_cast<uint64_t>(context), entry);
  if (known) gate_before_context_destroy(context);
  const CUresult result = call();
  gate_context_changed();
  if (!known) return result;
  if (result == CUDA_SUCCESS) {
    after_end(context, entry.gpu);
  } else {
    contexts.made.put(entry);
  }
  return result;
}

bool is_active(CUdevice device) {
  unsigned int flags = 0;
  int active = 0;
  return real().cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

// `ends`: true if a successful call destroys the context; otherwise the driver is asked.
template <class Call>
CUresult leave_primary(CUdevice device, Call call) {
  const uint32_t gpu = gpu_of(device);
  if (!attached() || gpu == kNoGpu) return call();
  const Guard guard(contexts.primary);
  const bool before = is_active(device);
  if (before) gate_before_primary_release(device);
  const CUresult result = call();
  gate_context_changed();
  if (!before || is_active(device)) return result;
  const CUcontext context = contexts.of[device];
  contexts.of[device] = nullptr;
  after_end(context, gpu);
  return result;
}

}  // namespace

void reset_contexts_after_fork() {
  contexts.primary.reset();
  contexts.made.forget();
  for (CUcontext& each : contexts.of) each = nullptr;
}

}  // namespace gantry::fence

using namespace gantry::fence;

CUresult cuCtxCreate(CUcontext* ctx, unsigned int flags, CUdevice dev) {
  return create_context(ctx, dev,
                        [&](CUcontext* to) { return real().cuCtxCreate(to, flags, dev); });
}
CUresult cuCtxCreate_v2(CUcontext* ctx, unsigned int flags, CUdevice dev) {
  return create_context(ctx, dev,
                        [&](CUcontext* to) { return real().cuCtxCreate_v2(to, flags, dev); });
}
CUresult cuCtxCreate_v3(CUcontext* ctx, CUexecAffinityParam* params_array, int num_params,
                        unsigned int flags, CUdevice dev) {
  return create_context(ctx, dev, [&](CUcontext* to) {
    return real().cuCtxCreate_v3(to, params_array, num_params, flags, dev);
  });
}
CUresult cuCtxCreate_v4(CUcontext* ctx, CUctxCreateParams* ctx_create_params, unsigned int flags,
                        CUdevice dev) {
  return create_context(ctx, dev, [&](CUcontext* to) {
    return real().cuCtxCreate_v4(to, ctx_create_params, flags, dev);
  });
}

CUresult cuCtxDestroy(CUcontext ctx) {
  return destroy(ctx, [&] { return real().cuCtxDestroy(ctx); });
}
CUresult cuCtxDestroy_v2(CUcontext ctx) {
  return destroy(ctx, [&] { return real().cuCtxDestroy_v2(ctx); });
}

// The use count of a context, as in CUDA 2; the context is destroyed with the last use.
CUresult cuCtxAttach(CUcontext* ctx, unsigned int flags) {
  const CUresult result = real().cuCtxAttach(ctx, flags);
  if (result == CUDA_SUCCESS && ctx != nullptr)
    contexts.made.update(reinterpret_cast<uint64_t>(*ctx), [](Entry& entry) { ++entry.count; });
  return result;
}
CUresult cuCtxDetach(CUcontext ctx) {
  bool last = true;
  contexts.made.update(reinterpret_cast<uint64_t>(ctx), [&](Entry& entry) {
    last = entry.count <= 1;
    if (!last) --entry.count;
  });
  const auto call = [&] { return real().cuCtxDetach(ctx); };
  return last ? destroy(ctx, call) : call();
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* ctx, CUdevice dev) {
  if (!attached() || ctx == nullptr) return real().cuDevicePrimaryCtxRetain(ctx, dev);
  if (foreign(dev)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  const uint32_t gpu = gpu_of(dev);
  if (gpu == kNoGpu) return real().cuDevicePrimaryCtxRetain(ctx, dev);
  const Guard guard(contexts.primary);
  const bool first = !is_active(dev);
  if (first && !reserve_context(gpu)) return refused(gpu, 0);
  const CUresult result = real().cuDevicePrimaryCtxRetain(ctx, dev);
  if (first) context_created(gpu);
  if (first && result != CUDA_SUCCESS) release_context(gpu);
  if (result != CUDA_SUCCESS) return result;
  contexts.of[dev] = *ctx;
  if (first) overhead_changed(gpu);
  return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return leave_primary(dev, [&] { return real().cuDevicePrimaryCtxRelease(dev); });
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return leave_primary(dev, [&] { return real().cuDevicePrimaryCtxRelease_v2(dev); });
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return leave_primary(dev, [&] { return real().cuDevicePrimaryCtxReset(dev); });
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return leave_primary(dev, [&] { return real().cuDevicePrimaryCtxReset_v2(dev); });
}

// The driver allocates the heap for kernels that allocate memory with this size.
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  ShareMemory share{};
  const uint32_t gpu = current_gpu();
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) refresh_if_due(gpu);
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && share_memory(gpu, share) && value > share.free &&
      current_context() != nullptr)
    return refused(gpu, value);
  const CUresult result = real().cuCtxSetLimit(limit, value);
  if (result == CUDA_SUCCESS && attached()) overhead_changed(gpu);
  return result;
}
