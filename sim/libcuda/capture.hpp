// SPDX-License-Identifier: Apache-2.0
// Stream capture: work for a capturing stream becomes nodes of a graph.
#pragma once

#include "sim/libcuda/graph.hpp"
#include "sim/libcuda/transfer.hpp"

namespace gantry::sim::cuda {

struct Capture : Object {
  static constexpr Kind kKind = Kind::Capture;
  Graph* graph;
  bool own;  // created for this capture, not by the program
  CUstreamCaptureMode mode;
  CUstreamCaptureStatus status;
  uint64_t id;
  Stream* origin;
  int32_t thread;
};

// Whether work for the stream must be recorded. An error means that it can neither be recorded nor
// done, because a capture is invalid or would become invalid.
CUresult recording(Stream& stream, bool& records);

// Adds a node after the nodes that the stream waits for; nullptr if there is no memory.
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

// For calls that cannot be recorded and that the stricter modes forbid during a capture: such a
// call invalidates the capture and returns the error.
CUresult refuse_while_capturing();
// For queries of a stream or event that is part of a capture.
CUresult refuse_if_capturing(Stream& stream);
CUresult refuse_if_any_captures(const Context& context);

// Streams and events are destroyed with their context.
void end_capture_of(Stream& stream);

}  // namespace gantry::sim::cuda
