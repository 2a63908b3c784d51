// SPDX-License-Identifier: Apache-2.0
// Entry points for contexts and primary contexts.
#include "sim/libcuda/attributes.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/context_stack.hpp"
#include "sim/libcuda/entries.hpp"

namespace gantry::sim::cuda {
namespace {

constexpr unsigned kApiVersion =
    3020;  // the value of the vendor's library for contexts of every version

CUresult create_current(CUcontext* ctx, unsigned int flags, CUdevice dev) {
  Device* device = device_at(dev);
  if (ctx == nullptr || (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = nullptr;
  if (const CUresult result = create_context(*device, flags, context); result != CUDA_SUCCESS)
    return result;
  if (!push_context(context)) {
    destroy_context(*context);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *ctx = handle_of<CUcontext>(context);
  return CUDA_SUCCESS;
}

// The context of a handle, or the current one for 0.
CUresult context_of(CUcontext handle, Context*& context) {
  context = handle == nullptr ? current() : find<Context>(handle);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

void end_primary(Device& device) {
  if (device.primary != nullptr) destroy_context(*device.primary);
  device.primary = nullptr;
  device.primary_uses = 0;
}

bool is_limit(CUlimit limit) {
  return static_cast<int>(limit) >= 0 && limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

}  // namespace

namespace entry {

CUresult cuDevicePrimaryCtxRetain(CUcontext* ctx, CUdevice dev) {
  Device* device = device_at(dev);
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary == nullptr) {
    Context* context = nullptr;
    const CUresult result = create_context(*device, device->primary_flags, context);
    if (result != CUDA_SUCCESS) return result;
    context->primary = true;
    device->primary = context;
  }
  ++device->primary_uses;
  *ctx = handle_of<CUcontext>(device->primary);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary_uses == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary_uses == 0) end_primary(*device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return entry::cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  end_primary(*device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return entry::cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  device->primary_flags = flags;
  if (device->primary != nullptr) device->primary->flags = flags;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return entry::cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  const Device* device = device_at(dev);
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *flags = device->primary_flags;
  *active = device->primary != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* ctx, unsigned int flags, CUdevice dev) {
  return create_current(ctx, flags, dev);
}
CUresult cuCtxCreate(CUcontext* ctx, unsigned int flags, CUdevice dev) {
  return create_current(ctx, flags, dev);
}
CUresult cuCtxCreate_v3(CUcontext* ctx, CUexecAffinityParam* params_array, int num_params,
                        unsigned int flags, CUdevice dev) {
  if (params_array != nullptr && num_params > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create_current(ctx, flags, dev);
}
CUresult cuCtxCreate_v4(CUcontext* ctx, CUctxCreateParams* ctx_create_params, unsigned int flags,
                        CUdevice dev) {
  if (ctx_create_params != nullptr) {
    if (ctx_create_params->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (ctx_create_params->numExecAffinityParams > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  return create_current(ctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  Context* context = find<Context>(ctx);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (top_of_stack() == context) pop_context();
  destroy_context(*context);
  return CUDA_SUCCESS;
}
CUresult cuCtxDestroy(CUcontext ctx) {
  return entry::cuCtxDestroy_v2(ctx);
}

CUresult cuCtxAttach(CUcontext* ctx, unsigned int flags) {
  if (ctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ++context->uses;
  *ctx = handle_of<CUcontext>(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx) {
  Context* context = find<Context>(ctx);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  return --context->uses == 0 ? entry::cuCtxDestroy_v2(ctx) : CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = find<Context>(ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return push_context(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuCtxPushCurrent(CUcontext ctx) {
  return entry::cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext* ctx) {
  Context* context = top_of_stack();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  pop_context();
  if (ctx != nullptr) *ctx = handle_of<CUcontext>(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* ctx) {
  return entry::cuCtxPopCurrent_v2(ctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  Context* context = find<Context>(ctx);
  if (ctx != nullptr && context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  replace_top(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* ctx) {
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ctx = handle_of<CUcontext>(current());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = context_of(ctx, context); result != CUDA_SUCCESS) return result;
  *device = static_cast<CUdevice>(context->device - driver.device);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  return entry::cuCtxGetDevice_v2(device, nullptr);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  Context* context = nullptr;
  if (const CUresult result = context_of(ctx, context); result != CUDA_SUCCESS) return result;
  return synchronise(*context);
}
CUresult cuCtxSynchronize() {
  return entry::cuCtxSynchronize_v2(nullptr);
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  const Context* context = current();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctx_id) {
  Context* context = nullptr;
  if (ctx_id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = context_of(ctx, context); result != CUDA_SUCCESS) return result;
  *ctx_id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  Context* context = nullptr;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = context_of(ctx, context); result != CUDA_SUCCESS) return result;
  *version = kApiVersion;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  const Context* context = current();
  if (value == nullptr || !is_limit(limit)) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && context->device->card->cc_major >= 9)
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = context->limit[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  Context* context = current();
  if (!is_limit(limit)) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && context->device->card->cc_major >= 9)
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  context->limit[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  const Context* context = current();
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *config = context->cache;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context->cache = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  const Context* context = current();
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *config = context->shared;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (config != CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE) context->shared = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least_priority, int* greatest_priority) {
  const Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (least_priority != nullptr) *least_priority = 0;
  if (greatest_priority != nullptr)
    *greatest_priority = context->device->card->cc_major >= 7 ? -5 : -1;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() {
  return current() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* exec_affinity, CUexecAffinityType type) {
  const Context* context = current();
  if (exec_affinity == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
    return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  exec_affinity->type = type;
  exec_affinity->param.smCount.val = context->device->multiprocessors;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer_context, unsigned int flags) {
  Context* context = current();
  Context* peer = find<Context>(peer_context);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr || peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  int can = 0;
  entry::cuDeviceCanAccessPeer(&can, static_cast<CUdevice>(context->device - driver.device),
                               static_cast<CUdevice>(peer->device - driver.device));
  if (can == 0) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const uint64_t bit = 1ULL << static_cast<unsigned>(peer->device - driver.device);
  if ((context->peers & bit) != 0) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  context->peers |= bit;
  return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer_context) {
  Context* context = current();
  Context* peer = find<Context>(peer_context);
  if (context == nullptr || peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const uint64_t bit = 1ULL << static_cast<unsigned>(peer->device - driver.device);
  if ((context->peers & bit) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  context->peers &= ~bit;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
