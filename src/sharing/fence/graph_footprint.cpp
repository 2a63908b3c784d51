// SPDX-License-Identifier: Apache-2.0
// Computes how much memory a graph needs. The driver gives allocations of one graph the same
// addresses if they never exist at the same time, so the graph needs as much memory as its
// allocations cover addresses.
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/graphs.hpp"
#include "sharing/fence/ledger.hpp"

#include <stdlib.h>
#include <sys/mman.h>

namespace gantry::fence {
namespace {

// Memory for the duration of one computation.
template <class T>
class Pieces {
 public:
  explicit Pieces(size_t count) : bytes_(count * sizeof(T)) {
    if (bytes_ == 0) return;
    void* made = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made != MAP_FAILED) at_ = static_cast<T*>(made);
  }
  ~Pieces() {
    if (at_ != nullptr) munmap(at_, bytes_);
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  T* get() const { return at_; }

 private:
  size_t bytes_;
  T* at_ = nullptr;
};

struct Range {
  uint64_t begin, end;
};

int by_begin(const void* a, const void* b) {
  const auto* first = static_cast<const Range*>(a);
  const auto* second = static_cast<const Range*>(b);
  return first->begin < second->begin ? -1 : static_cast<int>(first->begin > second->begin);
}

uint64_t covered(Range* ranges, size_t count) {
  qsort(ranges, count, sizeof(Range), by_begin);
  uint64_t total = 0;
  uint64_t reached = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t begin = ranges[i].begin > reached ? ranges[i].begin : reached;
    if (ranges[i].end <= begin) continue;
    total += ranges[i].end - begin;
    reached = ranges[i].end;
  }
  return total;
}

CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  real().cuGraphNodeGetType(node, &type);
  return type;
}

bool range_of(CUgraphNode node, Range& range, uint32_t& gpu) {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  if (real().cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS) return false;
  if (params.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE && gpu == kNoGpu)
    gpu = gpu_of(params.poolProps.location.id);
  range = {params.dptr, params.dptr + round_up(params.bytesize, kGranule)};
  return range.end >= range.begin;
}

}  // namespace

GraphFootprint footprint_of(CUgraph graph) {
  GraphFootprint found{.bytes = 0, .gpu = kNoGpu};
  size_t count = 0;
  if (real().cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return found;
  const Pieces<CUgraphNode> nodes(count);
  const Pieces<Range> ranges(count);
  if (nodes.get() == nullptr || ranges.get() == nullptr ||
      real().cuGraphGetNodes(graph, nodes.get(), &count) != CUDA_SUCCESS)
    return found;
  size_t allocations = 0;
  for (size_t i = 0; i < count; ++i) {
    const CUgraphNode node = nodes.get()[i];
    const CUgraphNodeType type = type_of(node);
    CUgraph child = nullptr;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      if (range_of(node, ranges.get()[allocations], found.gpu)) ++allocations;
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
               real().cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS) {
      const GraphFootprint inner = footprint_of(child);
      found.bytes += inner.bytes;
      if (found.gpu == kNoGpu) found.gpu = inner.gpu;
    }
  }
  found.bytes += covered(ranges.get(), allocations);
  return found;
}

}  // namespace gantry::fence
