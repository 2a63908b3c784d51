// SPDX-License-Identifier: Apache-2.0
// Hooks of what waits for work: when it returns the GPU may be free, and the keeper learns it at
// once. And of what ends the place where work runs.
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gate.hpp"
#include "sharing/fence/gated_launch.hpp"
#include "sharing/fence/pools.hpp"

using namespace gantry::fence;

namespace {

// What streams free with their order is free now.
CUresult synced(CUresult result) {
  pools_synced();
  return result;
}

// A call that succeeds when all that was launched before it on the stream, or in the context, has
// ended.
template <class On, class Call>
CUresult waited(On on, Call call) {
  if (!time_limited()) return call();
  Waited before;
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

// To plain programs this is the wait.
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
