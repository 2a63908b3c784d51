// SPDX-License-Identifier: Apache-2.0
// GPU time: what happens around a launch while the share is limited in time. The hooks ask
// time_limited() first; without it none of this is called.
#pragma once

#include "abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

enum class LaunchKind : uint8_t { Kernel, Graph };

struct Launch {
  CUstream stream;  // never nullptr: the default stream is CU_STREAM_LEGACY or CU_STREAM_PER_THREAD
  LaunchKind kind;
  const void* what;  // CUfunction, CUgraphExec: costs are learned by it
};

// Before the driver is called; may wait. False: not counted, gate_left is not called.
inline bool gate_enter(Launch& /*launch*/) {
  return true;
}
// The driver has answered.
inline void gate_left(const Launch& /*launch*/, CUresult /*result*/) {}

// What somebody has waited for with success: a stream, an event, a context's whole work (nullptr:
// the current one).
inline void gate_stream_synced(CUstream /*stream*/) {}
inline void gate_event_synced(CUevent /*event*/) {}
inline void gate_context_synced(CUcontext /*context*/) {}

// Before it is destroyed: nothing may be recorded on it any more.
inline void gate_stream_ends(CUstream /*stream*/) {}
inline void gate_context_ends(CUcontext /*context*/) {}
// Before the primary context of a device is reset or released for the last time.
inline void gate_primary_ends(CUdevice /*device*/) {}

// In the child of a fork.
inline void forget_gate() {}

}  // namespace gantry::fence
