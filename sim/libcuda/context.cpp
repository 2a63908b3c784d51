// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/context.hpp"

#include "sim/libcuda/attributes.hpp"
#include "sim/libcuda/capture.hpp"
#include "sim/libcuda/clock.hpp"
#include "sim/libcuda/context_stack.hpp"
#include "sim/libcuda/host_work.hpp"
#include "sim/libcuda/memory.hpp"
#include "sim/libcuda/modules.hpp"
#include "sim/libcuda/mps.hpp"
#include "sim/libcuda/pools.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

Stream* per_thread_stream(Context& context) {
  const int32_t thread = thread_id();
  size_t cursor = 0;
  while (Object* object = next_of(&context, Kind::Stream, cursor)) {
    auto* stream = static_cast<Stream*>(object);
    if (stream->thread == thread) return stream;
  }
  auto* stream = make<Stream>(&context);
  if (stream == nullptr) return nullptr;
  stream->thread = thread;
  stream->id = ++driver.next_id;
  return stream;
}

bool shares_server(const gantry_sim_use& use) {
  return driver.mps.server != 0 && use.mps_server == driver.mps.server;
}

void set_limits(Context& context) {
  context.limit[CU_LIMIT_STACK_SIZE] = 1024;
  context.limit[CU_LIMIT_PRINTF_FIFO_SIZE] = 8650752;
  context.limit[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
  context.limit[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context.limit[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  if (context.device->card->cc_major >= 8)
    context.limit[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] =
        static_cast<uint64_t>(context.device->card->l2_cache_bytes) / 16 * 3;
}

template <class T>
void destroy_all(const Context& context, void (*end)(T&)) {
  for (;;) {
    size_t cursor = 0;
    Object* object = next_of(&context, T::kKind, cursor);
    if (object == nullptr) return;
    end(*static_cast<T*>(object));
  }
}

}  // namespace

int32_t thread_id() {
  return static_cast<int32_t>(syscall(SYS_gettid));
}

Context* current() {
  return find<Context>(top_of_stack());
}

CUresult working_context(Context*& context) {
  context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (driver.sticky != CUDA_SUCCESS) return driver.sticky;
  return device_failure(*context->device);
}

Stream* stream_in(Context& context, CUstream handle) {
  if (handle == nullptr)
    return default_stream() == DefaultStream::PerThread ? per_thread_stream(context)
                                                        : &context.legacy;
  if (handle == CU_STREAM_LEGACY) return &context.legacy;
  if (handle == CU_STREAM_PER_THREAD) return per_thread_stream(context);
  return find<Stream>(handle);
}

CUresult working_stream(CUstream handle, Stream*& stream) {
  Context* context = nullptr;
  stream = find<Stream>(handle);
  if (stream == nullptr) {
    if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
    stream = stream_in(*context, handle);
    return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  }
  if (driver.sticky != CUDA_SUCCESS) return driver.sticky;
  return device_failure(*stream->context->device);
}

CUresult may_use(const Device& device) {
  const uint32_t mode = compute_mode_of(device);
  if (mode == CU_COMPUTEMODE_PROHIBITED) return CUDA_ERROR_UNKNOWN;
  if (mode != CU_COMPUTEMODE_EXCLUSIVE_PROCESS) return CUDA_SUCCESS;
  gantry_sim_use rows[64];
  const size_t count = gantry_sim_usage_list(driver.usage, device.gpu, rows, 64);
  for (size_t i = 0; i < count && i < 64; ++i) {
    if (rows[i].pid != getpid() && !shares_server(rows[i])) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  }
  return CUDA_SUCCESS;
}

CUresult create_context(Device& device, unsigned int flags, Context*& context) {
  if (driver.sticky != CUDA_SUCCESS) return driver.sticky;
  if (const CUresult result = device_failure(device); result != CUDA_SUCCESS) {
    // A program that starts on such a GPU did not cause the error.
    return result == CUDA_ERROR_LAUNCH_FAILED ? CUDA_ERROR_DEVICE_UNAVAILABLE : result;
  }
  if (const CUresult result = may_use(device); result != CUDA_SUCCESS) return result;
  if (const CUresult result = charge(device, context_bytes(device)); result != CUDA_SUCCESS)
    return result;
  context = make<Context>(nullptr);
  if (context == nullptr) {
    uncharge(device, context_bytes(device));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  context->device = &device;
  context->flags = flags;
  context->uses = 1;
  context->id = ++driver.next_id;
  context->shared = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  context->legacy.kind = Kind::Stream;
  context->legacy.context = context;
  set_limits(*context);
  tell_mps_device(device);
  return CUDA_SUCCESS;
}

void destroy_context(Context& context) {
  destroy_all<Module>(context, unload);
  destroy_all<Event>(context, [](Event& event) {
    forget_tail(event.tail);
    destroy(&event);
  });
  destroy_all<Stream>(context, [](Stream& stream) {
    end_capture_of(stream);
    destroy(&stream);
  });
  end_capture_of(context.legacy);
  free_context_arrays(context);
  free_context_memory(context);
  shrink_pools(*context.device);
  trim_graph_memory(*context.device);
  uncharge(*context.device, context_bytes(*context.device));
  destroy(&context);
}

void raise_fault(CUresult fault) {
  if (driver.sticky == CUDA_SUCCESS) driver.sticky = fault;
}

CUresult synchronise(Context& context) {
  Device& device = *context.device;
  if (const CUresult result = refuse_if_any_captures(context); result != CUDA_SUCCESS)
    return result;
  const uint64_t ready_ns = context_ready_ns(context);
  wait_for_host_work(host_work_of(context));
  wait_until(device, ready_ns);
  shrink_pools(device);
  return driver.sticky != CUDA_SUCCESS ? driver.sticky : device_failure(device);
}

}  // namespace gantry::sim::cuda
