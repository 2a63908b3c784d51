// SPDX-License-Identifier: Apache-2.0
// Stream capture: work asked of a capturing stream becomes nodes of a graph.
#pragma once

#include "sim/libcuda/graph.hpp"
#include "sim/libcuda/transfer.hpp"

namespace gantry::sim::cuda {

struct Capture : Object {
  static constexpr Kind kKind = Kind::Capture;
  Graph* graph;
  bool own;  // made for this capture, not the program's
  CUstreamCaptureMode mode;
  CUstreamCaptureStatus status;
  uint64_t id;
  Stream* origin;
  int32_t thread;
};

// Whether work for the stream is to be recorded. An error: it may neither be recorded nor done,
// because a capture went wrong or this would make it so.
CUresult recording(Stream& stream, bool& records);

// A node behind what the stream would wait for; nullptr when memory is short.
Node* record_node(Stream& stream, CUgraphNodeType type);
CUresult record_kernel(Stream& stream, const CUDA_KERNEL_NODE_PARAMS& params);
CUresult record_copy(Stream& stream, const CUDA_MEMCPY3D& copy);
CUresult record_fill(Stream& stream, const CUDA_MEMSET_NODE_PARAMS& fill);
CUresult record_allocation(Stream& stream, size_t bytes, Device& device, CUdeviceptr* pointer);
CUresult record_free(Stream& stream, CUdeviceptr pointer);
CUresult record_event(Stream& stream, Event& event);
// A stream that waits for an event of a capture joins it.
CUresult join_capture(Stream& stream, const Event& event, bool& joined);
void forget_tail(Tail& tail);

// For calls that cannot be recorded and, in the stricter modes, may not be made while a capture is
// under way: these end it, and say why.
CUresult refuse_while_capturing();
// For questions about a stream or event that is part of a capture.
CUresult refuse_if_capturing(Stream& stream);
CUresult refuse_if_any_captures(const Context& context);

// Streams and events go with their context.
void end_capture_of(Stream& stream);

}  // namespace gantry::sim::cuda
