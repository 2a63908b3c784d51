// SPDX-License-Identifier: Apache-2.0
// Hooks of stream capture. While a capture begins, the fence records no events at all; while it is
// in progress, none on the legacy stream.
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gate.hpp"
#include "sharing/fence/gated_launch.hpp"
#include "sharing/fence/streams.hpp"

using namespace gantry::fence;

namespace {

template <class Call>
CUresult start_capture(Call call) {
  gate_before_capture();
  const CUresult result = call();
  gate_after_capture_begin(result == CUDA_SUCCESS);
  return result;
}

// A capture that failed has also ended; one that never began, or belongs to another thread, has
// not.
CUresult capture_ended(CUresult result) {
  const bool not_ours = result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_ILLEGAL_STATE ||
                        result == CUDA_ERROR_INVALID_HANDLE ||
                        result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (!not_ours) gate_after_capture_end();
  return result;
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream stream) {
  return start_capture([&] { return real().cuStreamBeginCapture(stream); });
}
CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  return start_capture([&] { return real().cuStreamBeginCapture_ptsz(stream); });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return start_capture([&] { return real().cuStreamBeginCapture_v2(stream, mode); });
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return start_capture([&] { return real().cuStreamBeginCapture_v2_ptsz(stream, mode); });
}

#define FENCE_BEGIN_TO_GRAPH(symbol)                                                              \
  CUresult symbol(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,                \
                  const CUgraphEdgeData* dependency_data, size_t num_dependencies,                \
                  CUstreamCaptureMode mode) {                                                     \
    return start_capture([&] {                                                                    \
      return real().symbol(stream, graph, dependencies, dependency_data, num_dependencies, mode); \
    });                                                                                           \
  }
FENCE_BEGIN_TO_GRAPH(cuStreamBeginCaptureToGraph)
FENCE_BEGIN_TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz)

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return capture_ended(real().cuStreamEndCapture(stream, graph));
}
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return capture_ended(real().cuStreamEndCapture_ptsz(stream, graph));
}

// A stream that waits for an event of a capturing stream becomes part of that capture.
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  if (!captures_open()) return real().cuStreamWaitEvent(stream, event, flags);
  const CaptureJoinGuard joins(legacy(stream));
  return real().cuStreamWaitEvent(stream, event, flags);
}
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) {
  if (!captures_open()) return real().cuStreamWaitEvent_ptsz(stream, event, flags);
  const CaptureJoinGuard joins(per_thread(stream));
  return real().cuStreamWaitEvent_ptsz(stream, event, flags);
}
