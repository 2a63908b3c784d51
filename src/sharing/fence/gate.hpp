// SPDX-License-Identifier: Apache-2.0
// GPU time: what happens around a launch while the share is limited in time. The hooks ask
// time_limited() first; without it none of this is called.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

struct StreamWork;

enum class LaunchKind : uint8_t { Kernel, Graph };

struct Launch {
  CUstream stream;  // never nullptr: the default stream is CU_STREAM_LEGACY or CU_STREAM_PER_THREAD
  LaunchKind kind;
  const void* what;            // CUfunction, CUgraphExec: costs are learned by it
  StreamWork* work = nullptr;  // filled by gate_enter
  bool alone = false;          // its end is waited for before the next launch
  bool tell = false;           // the keeper thinks us idle
};

// Before the driver is called; may wait. False: not counted, gate_left is not called.
bool gate_enter(Launch& launch);
// The driver has answered. May wait, when more than enough is in the queue.
void gate_exit(const Launch& launch);

// Around a wait for work: how much is known to have ended when it succeeds.
struct Waited {
  static constexpr uint32_t kMost = 16;  // streams; the others are asked for
  uint32_t count = 0;
  bool everywhere = false;  // any GPU may be free afterwards
  struct {
    StreamWork* work;
    uint64_t done;
  } on[kMost];
};
void gate_before_wait(CUstream stream, Waited& waited);
void gate_before_wait(CUcontext context, Waited& waited);  // nullptr: the current one
void gate_after_wait(const Waited& waited);
// An event: which work it was behind is not known.
void gate_after_event_sync();

// Before it is destroyed: nothing may be recorded on it any more.
void gate_before_stream_destroy(CUstream stream);
void gate_before_context_destroy(CUcontext context);
// Before the primary context of a device is reset or released for the last time.
void gate_before_primary_release(CUdevice device);
// This thread's current context may be another now.
void gate_context_changed();

// Around the beginning of a capture, whatever comes of it, and after its end.
void gate_before_capture();
void gate_after_capture_begin(bool really);
void gate_after_capture_end();

// In the child of a fork.
void reset_gate_after_fork();

}  // namespace gantry::fence
