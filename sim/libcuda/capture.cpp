// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/capture.hpp"

#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool set_tail(Tail& tail, Node* const* nodes, uint32_t count) {
  auto** copy = static_cast<Node**>(malloc((count + 1) * sizeof(Node*)));
  if (copy == nullptr) return false;
  if (count != 0) memcpy(copy, nodes, count * sizeof(Node*));
  free(tail.node);
  tail = {copy, count};
  return true;
}

bool add_to_tail(Tail& tail, Node* node) {
  for (uint32_t i = 0; i < tail.count; ++i) {
    if (tail.node[i] == node) return true;
  }
  void* grown = realloc(tail.node, (tail.count + 1) * sizeof(Node*));
  if (grown == nullptr) return false;
  tail.node = static_cast<Node**>(grown);
  tail.node[tail.count++] = node;
  return true;
}

// Calls visit for every stream of the process, default streams included.
template <class Visit>
void each_stream(Visit visit) {
  size_t contexts = 0;
  while (Object* object = next_of(nullptr, Kind::Context, contexts)) {
    auto* context = static_cast<Context*>(object);
    visit(context->legacy);
    size_t streams = 0;
    while (Object* stream = next_of(context, Kind::Stream, streams))
      visit(*static_cast<Stream*>(stream));
  }
}

// Releases the streams; the caller owns the graph.
void let_streams_go(const Capture& capture) {
  each_stream([&capture](Stream& stream) {
    if (stream.capture != &capture) return;
    stream.capture = nullptr;
    forget_tail(stream.tail);
  });
}

// Whether the stream that ends the capture waits for all work of the other streams. Recorded nodes
// only wait for earlier ones.
bool all_joined(const Capture& capture) {
  const Graph& graph = *capture.graph;
  for (uint32_t i = 0; i < graph.count; ++i) graph.nodes[i]->mark = 0;
  const Tail& end = capture.origin->tail;
  for (uint32_t i = 0; i < end.count; ++i) end.node[i]->mark = 1;
  for (uint32_t i = graph.count; i > 0; --i) {
    const Node& node = *graph.nodes[i - 1];
    for (uint32_t k = 0; k < node.need_count && node.mark != 0; ++k) node.needs[k]->mark = 1;
  }
  bool joined = true;
  each_stream([&](const Stream& stream) {
    if (stream.capture != &capture) return;
    for (uint32_t i = 0; i < stream.tail.count; ++i)
      joined = joined && stream.tail.node[i]->mark != 0;
  });
  return joined;
}

bool is_strict_for_us(const Capture& capture) {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == thread_id()) return true;
  return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
         thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult begin(Stream& stream, Graph* graph, bool own, CUstreamCaptureMode mode) {
  auto* capture = make<Capture>(nullptr);
  if (capture == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  capture->graph = graph;
  capture->own = own;
  capture->mode = mode;
  capture->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  capture->id = ++driver.next_id;
  capture->origin = &stream;
  capture->thread = thread_id();
  stream.capture = capture;
  return CUDA_SUCCESS;
}

CUresult may_begin(CUstream handle, CUstreamCaptureMode mode, Stream*& stream) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (stream == &stream->context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return stream->capture != nullptr ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

// Discards a capture that failed.
void discard(Capture& capture) {
  let_streams_go(capture);
  if (capture.own) end_graph(*capture.graph);
  destroy(&capture);
}

CUresult capture_information(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                             CUgraph* graph, const CUgraphNode** needs, size_t* count) {
  Stream* stream = nullptr;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(handle, stream); result != CUDA_SUCCESS) return result;
  const Capture* capture = stream->capture;
  *status = capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE : capture->status;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id != nullptr) *id = capture->id;
  if (graph != nullptr) *graph = handle_of<CUgraph>(capture->graph);
  if (needs != nullptr) *needs = reinterpret_cast<const CUgraphNode*>(stream->tail.node);
  if (count != nullptr) *count = stream->tail.count;
  return CUDA_SUCCESS;
}

}  // namespace

void forget_tail(Tail& tail) {
  free(tail.node);
  tail = {nullptr, 0};
}

CUresult recording(Stream& stream, bool& records) {
  records = stream.capture != nullptr;
  if (records) {
    return stream.capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE
               ? CUDA_SUCCESS
               : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (&stream != &stream.context->legacy) return CUDA_SUCCESS;
  // The legacy default stream waits for all blocking ones, which a capture cannot guarantee.
  CUresult result = CUDA_SUCCESS;
  each_stream([&](Stream& other) {
    if (other.context != stream.context || other.capture == nullptr) return;
    if ((other.flags & CU_STREAM_NON_BLOCKING) != 0) return;
    other.capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  });
  return result;
}

Node* record_node(Stream& stream, CUgraphNodeType type) {
  Node* node = add_node(*stream.capture->graph, type, stream.tail.node, stream.tail.count);
  if (node == nullptr) return nullptr;
  if (set_tail(stream.tail, &node, 1)) return node;
  end_node(*node);
  return nullptr;
}

CUresult record_kernel(Stream& stream, const CUDA_KERNEL_NODE_PARAMS& params) {
  Node* node = record_node(stream, CU_GRAPH_NODE_TYPE_KERNEL);
  return node == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : set_kernel(*node, params);
}

CUresult record_copy(Stream& stream, const CUDA_MEMCPY3D& copy) {
  Node* node = record_node(stream, CU_GRAPH_NODE_TYPE_MEMCPY);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  node->copy = copy;
  return CUDA_SUCCESS;
}

CUresult record_fill(Stream& stream, const CUDA_MEMSET_NODE_PARAMS& fill) {
  Node* node = record_node(stream, CU_GRAPH_NODE_TYPE_MEMSET);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  node->fill = fill;
  return CUDA_SUCCESS;
}

CUresult record_allocation(Stream& stream, size_t bytes, Device& device, CUdeviceptr* pointer) {
  Node* node = record_node(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE,
                               static_cast<int>(&device - driver.device)};
  params.bytesize = bytes;
  const CUresult result = reserve_for(*node, params);
  if (result == CUDA_SUCCESS) *pointer = params.dptr;
  return result;
}

CUresult record_free(Stream& stream, CUdeviceptr pointer) {
  const Block* block = block_at(pointer);
  if (block == nullptr || block->space != Space::Graph || block->address != pointer)
    return CUDA_ERROR_INVALID_VALUE;
  Node* node = record_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  node->freed = pointer;
  return CUDA_SUCCESS;
}

CUresult record_event(Stream& stream, Event& event) {
  if (!set_tail(event.tail, stream.tail.node, stream.tail.count)) return CUDA_ERROR_OUT_OF_MEMORY;
  event.capture = stream.capture->id;
  event.recorded = false;
  return CUDA_SUCCESS;
}

CUresult join_capture(Stream& stream, const Event& event, bool& joined) {
  Capture* capture = nullptr;
  size_t cursor = 0;
  while (Object* object = next_of(nullptr, Kind::Capture, cursor)) {
    auto* one = static_cast<Capture*>(object);
    if (one->id == event.capture) capture = one;
  }
  joined = capture != nullptr || stream.capture != nullptr;
  if (!joined) return CUDA_SUCCESS;
  if (capture == nullptr) {
    stream.capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (&stream == &stream.context->legacy) {
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream.capture != nullptr && stream.capture != capture) {
    stream.capture->status = capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  stream.capture = capture;
  for (uint32_t i = 0; i < event.tail.count; ++i) {
    if (!add_to_tail(stream.tail, event.tail.node[i])) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult refuse_while_capturing() {
  CUresult result = CUDA_SUCCESS;
  size_t cursor = 0;
  while (Object* object = next_of(nullptr, Kind::Capture, cursor)) {
    auto* capture = static_cast<Capture*>(object);
    if (!is_strict_for_us(*capture)) continue;
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult refuse_if_capturing(Stream& stream) {
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  stream.capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_if_any_captures(const Context& context) {
  CUresult result = CUDA_SUCCESS;
  each_stream([&](Stream& stream) {
    if (stream.context == &context && stream.capture != nullptr)
      result = refuse_if_capturing(stream);
  });
  return result;
}

void end_capture_of(Stream& stream) {
  if (stream.capture != nullptr && stream.capture->origin == &stream) discard(*stream.capture);
  stream.capture = nullptr;
  forget_tail(stream.tail);
}

namespace entry {

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  Stream* stream = nullptr;
  if (const CUresult result = may_begin(handle, mode, stream); result != CUDA_SUCCESS)
    return result;
  Graph* graph = make_graph(false);
  if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = begin(*stream, graph, true, mode);
  if (result != CUDA_SUCCESS) end_graph(*graph);
  return result;
}
CUresult cuStreamBeginCapture(CUstream handle) {
  return entry::cuStreamBeginCapture_v2(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                     size_t num_dependencies, CUstreamCaptureMode mode) {
  Stream* stream = nullptr;
  if (const CUresult result = may_begin(handle, mode, stream); result != CUDA_SUCCESS)
    return result;
  Graph* known = find<Graph>(graph);
  if (known == nullptr || (dependencies == nullptr && num_dependencies != 0))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < num_dependencies; ++i) {
    Node* node = find<Node>(dependencies[i]);
    if (node == nullptr || node->graph != known || !add_to_tail(stream->tail, node)) {
      forget_tail(stream->tail);
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return begin(*stream, known, false, mode);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  Stream* stream = nullptr;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(handle, stream); result != CUDA_SUCCESS) return result;
  Capture* capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = nullptr;
  if (capture->origin != stream) {
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const bool broken = capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (broken || !all_joined(*capture)) {
    discard(*capture);
    return broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  *graph = handle_of<CUgraph>(capture->graph);
  let_streams_go(*capture);
  destroy(capture);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* capture_status) {
  return capture_information(handle, capture_status, nullptr, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* capture_status_out,
                                cuuint64_t* id_out) {
  return capture_information(handle, capture_status_out, id_out, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* capture_status_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   size_t* num_dependencies_out) {
  return capture_information(handle, capture_status_out, id_out, graph_out, dependencies_out,
                             num_dependencies_out);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* capture_status_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edge_data_out,
                                   size_t* num_dependencies_out) {
  if (edge_data_out != nullptr) *edge_data_out = nullptr;
  return capture_information(handle, capture_status_out, id_out, graph_out, dependencies_out,
                             num_dependencies_out);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
      *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  const CUstreamCaptureMode before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
