// SPDX-License-Identifier: Apache-2.0
// Hooks of what waits for work, and of what ends the place where work runs.
#include "fence/driver.hpp"
#include "fence/gate.hpp"
#include "fence/host.hpp"
#include "fence/pools.hpp"

using namespace gantry::fence;

CUresult cuStreamSynchronize(CUstream stream) {
  const CUresult result = real().cuStreamSynchronize(stream);
  pools_synced();
  if (result == CUDA_SUCCESS && time_limited())
    gate_stream_synced(stream == nullptr ? CU_STREAM_LEGACY : stream);
  return result;
}
CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  const CUresult result = real().cuStreamSynchronize_ptsz(stream);
  pools_synced();
  if (result == CUDA_SUCCESS && time_limited())
    gate_stream_synced(stream == nullptr ? CU_STREAM_PER_THREAD : stream);
  return result;
}

CUresult cuEventSynchronize(CUevent event) {
  const CUresult result = real().cuEventSynchronize(event);
  pools_synced();
  if (result == CUDA_SUCCESS && time_limited()) gate_event_synced(event);
  return result;
}

CUresult cuCtxSynchronize() {
  const CUresult result = real().cuCtxSynchronize();
  pools_synced();
  if (result == CUDA_SUCCESS && time_limited()) gate_context_synced(nullptr);
  return result;
}
CUresult cuCtxSynchronize_v2(CUcontext context) {
  const CUresult result = real().cuCtxSynchronize_v2(context);
  pools_synced();
  if (result == CUDA_SUCCESS && time_limited()) gate_context_synced(context);
  return result;
}

CUresult cuStreamDestroy(CUstream stream) {
  gate_stream_ends(stream);
  return real().cuStreamDestroy(stream);
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  gate_stream_ends(stream);
  return real().cuStreamDestroy_v2(stream);
}
