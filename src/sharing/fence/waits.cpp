// SPDX-License-Identifier: Apache-2.0
// Hooks of functions that wait for work: when they return, the GPU may be free, and the daemon is
// told at once. Also hooks of functions that destroy what work runs on.
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gate.hpp"
#include "sharing/fence/gated_launch.hpp"
#include "sharing/fence/pools.hpp"

using namespace gantry::fence;

namespace {

// Stream-ordered frees are done now.
CUresult synced(CUresult result) {
  pools_synced();
  return result;
}

// A call that succeeds when all earlier launches on the stream, or in the context, have ended.
template <class On, class Call>
CUresult waited(On on, Call call) {
  if (!time_limited()) return call();
  WaitScope before;
  gate_before_wait(on, before);
  const CUresult result = call();
  if (result == CUDA_SUCCESS) gate_after_wait(before);
  return result;
}

}  // namespace

CUresult cuStreamSynchronize(CUstream stream) {
  return waited(legacy(stream), [&] { return synced(real().cuStreamSynchronize(stream)); });
}
CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return waited(per_thread(stream),
                [&] { return synced(real().cuStreamSynchronize_ptsz(stream)); });
}

CUresult cuStreamQuery(CUstream stream) {
  return waited(legacy(stream), [&] { return real().cuStreamQuery(stream); });
}
CUresult cuStreamQuery_ptsz(CUstream stream) {
  return waited(per_thread(stream), [&] { return real().cuStreamQuery_ptsz(stream); });
}

// Simple programs wait with this call.
CUresult cuMemcpyDtoH_v2(void* dst_host, CUdeviceptr src_device, size_t bytes) {
  return waited(CU_STREAM_LEGACY,
                [&] { return real().cuMemcpyDtoH_v2(dst_host, src_device, bytes); });
}
CUresult cuMemcpyDtoH_v2_ptds(void* dst_host, CUdeviceptr src_device, size_t bytes) {
  return waited(CU_STREAM_PER_THREAD,
                [&] { return real().cuMemcpyDtoH_v2_ptds(dst_host, src_device, bytes); });
}

CUresult cuEventSynchronize(CUevent event) {
  const CUresult result = synced(real().cuEventSynchronize(event));
  if (result == CUDA_SUCCESS && time_limited()) gate_after_event_sync();
  return result;
}

CUresult cuCtxSynchronize() {
  return waited(CUcontext{nullptr}, [] { return synced(real().cuCtxSynchronize()); });
}
CUresult cuCtxSynchronize_v2(CUcontext context) {
  return waited(context, [&] { return synced(real().cuCtxSynchronize_v2(context)); });
}

CUresult cuStreamDestroy(CUstream stream) {
  gate_before_stream_destroy(stream);
  return real().cuStreamDestroy(stream);
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  gate_before_stream_destroy(stream);
  return real().cuStreamDestroy_v2(stream);
}
