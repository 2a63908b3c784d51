// SPDX-License-Identifier: Apache-2.0
// GPU time: what happens around a launch while the share's time is limited. The hooks call
// time_limited() first; without a limit none of this is called.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

struct StreamWork;

enum class LaunchKind : uint8_t { Kernel, Graph };

struct Launch {
  CUstream stream;  // never nullptr: the default stream is CU_STREAM_LEGACY or CU_STREAM_PER_THREAD
  LaunchKind kind;
  const void* what;            // CUfunction or CUgraphExec: the key of the learned cost
  StreamWork* work = nullptr;  // filled by gate_enter
  bool alone = false;          // the next launch waits for its end
  bool tell = false;           // the daemon believes that this process is idle
};

enum class LaunchEntry : uint8_t {
  Counted,     // gate_exit must be called
  NotCounted,  // it must not
  Refused,     // the launch must not be made: return kLaunchRefused
};
// There has been no share daemon for a while, and the share has a cap.
inline constexpr CUresult kLaunchRefused = CUDA_ERROR_SYSTEM_NOT_READY;

// Call before the driver's call; may wait.
LaunchEntry gate_enter(Launch& launch);
// Call after the driver's call. May wait if the queue is full enough.
void gate_exit(const Launch& launch);

// Around a wait for work: which work has ended if the wait succeeds.
struct WaitScope {
  static constexpr uint32_t kMaxStreams = 16;  // the others are queried
  uint32_t count = 0;
  bool everywhere = false;  // any GPU may be free afterwards
  struct {
    StreamWork* work;
    uint64_t done;
  } on[kMaxStreams];
};
void gate_before_wait(CUstream stream, WaitScope& waited);
void gate_before_wait(CUcontext context, WaitScope& waited);  // nullptr: the current one
void gate_after_wait(const WaitScope& waited);
// For an event: it is unknown which work preceded it.
void gate_after_event_sync();

// Call before the stream is destroyed: no event may be recorded on it afterwards.
void gate_before_stream_destroy(CUstream stream);
void gate_before_context_destroy(CUcontext context);
// Call before the primary context of a device is reset or released for the last time.
void gate_before_primary_release(CUdevice device);
// The current context of this thread may have changed.
void gate_context_changed();

// Call around the beginning of a capture, whether it succeeds or not, and after its end.
void gate_before_capture();
void gate_after_capture_begin(bool really);
void gate_after_capture_end();

// Call this in the child of a fork.
void reset_gate_after_fork();

}  // namespace gantry::fence
