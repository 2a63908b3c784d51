// SPDX-License-Identifier: Apache-2.0
// Entry points for streams and events.
#include "sim/libcuda/capture.hpp"
#include "sim/libcuda/clock.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/host_work.hpp"
#include "sim/libcuda/pools.hpp"

namespace gantry::sim::cuda {
namespace {

// A query of a stream is not work: it also succeeds in a context that has faulted.
Stream* any_stream(CUstream handle) {
  if (Stream* stream = find<Stream>(handle)) return stream;
  Context* context = current();
  return context == nullptr ? nullptr : stream_in(*context, handle);
}

CUresult no_such_stream() {
  return current() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
}

int greatest_priority(const Context& context) {
  return context.device->card->cc_major >= 7 ? -5 : -1;
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  const Event* first = find<Event>(start);
  const Event* last = find<Event>(end);
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (first == nullptr || last == nullptr || !first->recorded || !last->recorded)
    return CUDA_ERROR_INVALID_HANDLE;
  if (((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  if (driver.sticky != CUDA_SUCCESS) return driver.sticky;
  const Device& device = *first->context->device;
  if (last->context->device != &device) return CUDA_ERROR_INVALID_HANDLE;
  if (!host_work_done(first->host_work) || !host_work_done(last->host_work) ||
      !is_done(device, first->when_ns) || !is_done(device, last->when_ns))
    return CUDA_ERROR_NOT_READY;
  const auto difference =
      static_cast<int64_t>(wall_ns(device, last->when_ns) - wall_ns(device, first->when_ns));
  *milliseconds = static_cast<float>(static_cast<double>(difference) / 1e6);
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  if (stream == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  auto* made = make<Stream>(context);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const int greatest = greatest_priority(*context);
  made->flags = flags;
  made->priority = priority > 0 ? 0 : priority < greatest ? greatest : priority;
  made->id = ++driver.next_id;
  *stream = handle_of<CUstream>(made);
  return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return entry::cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  Stream* made = find<Stream>(stream);
  if (made == nullptr || made->thread != 0) return CUDA_ERROR_INVALID_HANDLE;
  end_capture_of(*made);
  destroy(made);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  return entry::cuStreamDestroy_v2(stream);
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  const Stream* known = any_stream(stream);
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return no_such_stream();
  *priority = known->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) {
  const Stream* known = any_stream(stream);
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return no_such_stream();
  *flags = known->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* stream_id) {
  const Stream* known = any_stream(stream);
  if (stream_id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return no_such_stream();
  *stream_id = known->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* ctx) {
  const Stream* known = any_stream(stream);
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return no_such_stream();
  *ctx = handle_of<CUcontext>(known->context);
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* ctx, CUgreenCtx* green_ctx) {
  if (green_ctx != nullptr) *green_ctx = nullptr;
  return entry::cuStreamGetCtx(stream, ctx);
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  const Stream* known = any_stream(stream);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return no_such_stream();
  *device = static_cast<CUdevice>(known->context->device - driver.device);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
  Stream* waiting = nullptr;
  if (const CUresult result = working_stream(stream, waiting); result != CUDA_SUCCESS)
    return result;
  const Event* known = find<Event>(event);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  bool joined = false;
  const CUresult result = join_capture(*waiting, *known, joined);
  if (joined) return result;
  if (known->recorded && known->when_ns > waiting->ready_ns) waiting->ready_ns = known->when_ns;
  if (known->recorded && known->host_work > waiting->host_work)
    waiting->host_work = known->host_work;
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
  Stream* asked = nullptr;
  if (const CUresult result = working_stream(stream, asked); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_if_capturing(*asked); result != CUDA_SUCCESS) return result;
  return host_work_done(host_work_before(*asked)) &&
                 is_done(*asked->context->device, asked->ready_ns)
             ? CUDA_SUCCESS
             : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream stream) {
  Stream* asked = nullptr;
  if (const CUresult result = working_stream(stream, asked); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_if_capturing(*asked); result != CUDA_SUCCESS) return result;
  Device& device = *asked->context->device;
  const uint64_t ready_ns = asked->ready_ns;
  wait_for_host_work(host_work_before(*asked));
  wait_until(device, ready_ns);
  shrink_pools(device);
  return driver.sticky;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void* user_data) {
  Stream* in = nullptr;
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  bool records = false;
  if (const CUresult result = recording(*in, records); result != CUDA_SUCCESS) return result;
  if (records) {
    Node* node = record_node(*in, CU_GRAPH_NODE_TYPE_HOST);
    if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    node->host = {fn, user_data};
    return CUDA_SUCCESS;
  }
  return put_host_work(*in, {fn, nullptr, stream, user_data});
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data,
                             unsigned int flags) {
  Stream* in = nullptr;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_if_capturing(*in); result != CUDA_SUCCESS) return result;
  return put_host_work(*in, {nullptr, callback, stream, user_data});
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  if (event == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  auto* made = make<Event>(context);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->flags = flags;
  *event = handle_of<CUevent>(made);
  return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int) {
  Stream* in = nullptr;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  Event* known = find<Event>(event);
  if (known == nullptr || known->context != in->context) return CUDA_ERROR_INVALID_HANDLE;
  bool records = false;
  if (const CUresult result = recording(*in, records); result != CUDA_SUCCESS) return result;
  if (records) return record_event(*in, *known);
  known->capture = 0;
  enqueue(*in, 0);
  known->recorded = true;
  known->when_ns = in->ready_ns;
  known->host_work = host_work_before(*in);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return entry::cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventQuery(CUevent event) {
  const Event* known = find<Event>(event);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (driver.sticky != CUDA_SUCCESS) return driver.sticky;
  if (known->capture != 0) return CUDA_ERROR_CAPTURED_EVENT;
  return !known->recorded || (host_work_done(known->host_work) &&
                              is_done(*known->context->device, known->when_ns))
             ? CUDA_SUCCESS
             : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  const Event* known = find<Event>(event);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (known->capture != 0) return CUDA_ERROR_CAPTURED_EVENT;
  Device& device = *known->context->device;
  if (known->recorded) {
    const uint64_t when_ns = known->when_ns;
    wait_for_host_work(known->host_work);
    wait_until(device, when_ns);
  }
  shrink_pools(device);
  return driver.sticky;
}

CUresult cuEventDestroy_v2(CUevent event) {
  Event* known = find<Event>(event);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  forget_tail(known->tail);
  destroy(known);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  return entry::cuEventDestroy_v2(event);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}

}  // namespace entry
}  // namespace gantry::sim::cuda
