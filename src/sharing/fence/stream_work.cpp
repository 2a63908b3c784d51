// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/stream_work.hpp"

#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpu_turn.hpp"
#include "sharing/fence/graph_costs.hpp"

namespace gantry::fence {
namespace {

Mark& oldest(StreamWork& work) {
  return work.marks[work.first];
}

const Mark& newest(const StreamWork& work) {
  return work.marks[(work.first + work.count - 1) % StreamWork::kMarks];
}

void drop_oldest(StreamWork& work) {
  work.first = (work.first + 1) % StreamWork::kMarks;
  --work.count;
}

uint64_t expected_of(const Mark& mark, uint64_t cost) {
  return mark.launches * cost + mark.graph_ns;
}

// Next to a graph the cost of single launches is unknown.
void learn_from(StreamWork& work, const Sample& sample, const Mark& with_graph) {
  const uint64_t believed = cost_of(work);
  if (with_graph.graph != nullptr) {
    learn_graph_cost(with_graph.graph, with_graph.graph_ns, sample);
    return;
  }
  learn(work.cost, believed, sample);
  GpuTurn& turn = turn_of(work.gpu());
  const uint64_t mean = turn.cost_ns.load(std::memory_order_relaxed);
  turn.cost_ns.store(mean == 0 ? work.cost.ns : (mean * 7 + work.cost.ns) / 8,
                     std::memory_order_relaxed);
}

// An error also means that the work has ended: nothing of this context will run again.
bool reached(const Mark& mark) {
  return real().cuEventQuery(mark.event) != CUDA_ERROR_NOT_READY;
}

CUevent event_for(Mark& mark) {
  if (mark.event == nullptr &&
      real().cuEventCreate(&mark.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    mark.event = nullptr;
  return mark.event;
}

// Launches after the last mark, without graphs.
uint64_t unmarked(const StreamWork& work) {
  const uint64_t launches = work.done.load(std::memory_order_relaxed) - work.marked;
  return launches > work.graphs ? launches - work.graphs : 0;
}

void widen(StreamWork& work, uint64_t ended) {
  constexpr uint64_t kWidest = 1U << 20U;
  work.window = work.window + ended < kWidest ? work.window + ended : kWidest;
}

void tail_is_marked(StreamWork& work, uint64_t done) {
  work.marked = done;
  work.tail_until_ns = 0;
  work.graph = nullptr;
  work.graph_ns = work.graphs = 0;
}

// The expected remaining work of the GPU.
void show_queue(StreamWork& work) {
  const uint64_t cost = cost_of(work);
  uint64_t queued = 0;
  for (uint32_t i = 0; i < work.count; ++i)
    queued += expected_of(work.marks[(work.first + i) % StreamWork::kMarks], cost);
  turn_of(work.gpu()).queued_ns.fetch_add(queued - work.queued_ns, std::memory_order_relaxed);
  work.queued_ns = queued;
}

// Advances to the first mark that has not been reached, and learns from the marks before it.
template <class Reached>
void pass_marks(StreamWork& work, uint64_t now_ns, Reached is_reached) {
  const uint64_t cost = cost_of(work);
  Mark with_graph{};
  uint64_t expected = 0;
  uint64_t completed = work.completed.load(std::memory_order_relaxed);
  const uint32_t before = work.count;
  const uint32_t gate = gate_of(work.gpu());
  bool disturbed = false;
  while (work.count != 0 && is_reached(oldest(work))) {
    const Mark& mark = oldest(work);
    if (mark.graph != nullptr) with_graph = mark;
    disturbed = disturbed || mark.first || mark.gate != gate;
    expected += expected_of(mark, cost);
    completed = mark.through;
    drop_oldest(work);
  }
  const uint64_t before_ns = work.unreached_ns;
  if (work.count != 0) work.unreached_ns = now_ns;
  if (work.count == before) return;
  widen(work, completed - work.completed.load(std::memory_order_relaxed));
  work.completed.store(completed, std::memory_order_seq_cst);
  learn_from(work,
             {.expected_ns = expected,
              .least_ns = before_ns > work.latest_ns ? before_ns - work.latest_ns : 0,
              .most_ns = now_ns - work.earliest_ns,
              .disturbed = disturbed},
             with_graph);
  work.earliest_ns = before_ns;
  work.latest_ns = now_ns;
  show_queue(work);
}

}  // namespace

uint64_t cost_of(const StreamWork& work) {
  const uint64_t mean = turn_of(work.gpu()).cost_ns.load(std::memory_order_relaxed);
  return work.cost.or_else(mean == 0 ? kUnknownCostNs : mean);
}

uint64_t launches_outstanding(const StreamWork& work) {
  return work.done.load(std::memory_order_relaxed) - work.completed.load(std::memory_order_relaxed);
}

// A part of the oldest mark's work has already run.
uint64_t expected_ns(const StreamWork& work, uint64_t now_ns) {
  const uint64_t cost = cost_of(work);
  uint64_t sum = work.queued_ns + work.graph_ns + unmarked(work) * cost;
  if (work.count != 0 && now_ns > work.latest_ns) {
    const uint64_t first = expected_of(work.marks[work.first], cost);
    const uint64_t ran = now_ns - work.latest_ns;
    const uint64_t less = ran < first ? ran : first;
    sum = sum > less ? sum - less : 0;
  }
  return sum;
}

void look(StreamWork& work, uint64_t now_ns) {
  if (capture_is_beginning()) return;
  // If the CPU is slower than the GPU, all marks have been reached, and one query is enough.
  const bool all = work.count > 1 && reached(newest(work));
  pass_marks(work, now_ns, [all](const Mark& mark) { return all || reached(mark); });
}

bool mark(StreamWork& work, uint64_t now_ns) {
  const uint64_t done = work.done.load(std::memory_order_seq_cst);
  const uint64_t cost = cost_of(work);
  const uint64_t launches = done - work.marked;
  const uint64_t narrow = work.window / kFirstWindow;  // as long as the window is
  const uint64_t usual = launches_between_marks(cost);
  work.next_mark.store(done + (narrow < usual ? narrow : usual), std::memory_order_relaxed);
  if (launches == 0) return true;
  if (work.life.load(std::memory_order_relaxed) != StreamState::Alive ||
      work.count == StreamWork::kMarks || capture_is_beginning())
    return false;
  Mark& made = work.marks[(work.first + work.count) % StreamWork::kMarks];
  if (event_for(made) == nullptr) return false;
  if (real().cuEventRecord(made.event, work.stream) != CUDA_SUCCESS) return false;
  if (work.count == 0) {
    // Launched after the last mark, and queued after its work on the stream.
    work.earliest_ns =
        work.last_mark_ns > work.unreached_ns ? work.last_mark_ns : work.unreached_ns;
    work.latest_ns = work.unreached_ns = now_ns;
  }
  work.last_mark_ns = now_ns;
  made.gate = gate_of(work.gpu());
  made.first = made.gate != work.last_gate;
  work.last_gate = made.gate;
  made.through = done;
  made.launches = launches > work.graphs ? launches - work.graphs : 0;
  made.graph = work.graph;
  made.graph_ns = work.graph_ns;
  ++work.count;
  tail_is_marked(work, done);
  show_queue(work);
  return true;
}

void complete_through(StreamWork& work, uint64_t done, uint64_t now_ns) {
  pass_marks(work, now_ns, [done](const Mark& mark) { return mark.through <= done; });
  if (done > work.marked) tail_is_marked(work, done);
  if (done > work.completed.load(std::memory_order_relaxed))
    work.completed.store(done, std::memory_order_seq_cst);
}

void abandon(StreamWork& work) {
  work.count = 0;
  for (Mark& mark : work.marks) mark.event = nullptr;
  const uint64_t done = work.done.load(std::memory_order_relaxed);
  tail_is_marked(work, done);
  work.completed.store(done, std::memory_order_seq_cst);
  show_queue(work);
}

void recycle(StreamWork& work) {
  for (Mark& mark : work.marks) {
    if (mark.event != nullptr) real().cuEventDestroy_v2(mark.event);
    mark.event = nullptr;
  }
}

bool stream_is_capturing(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = real().cuStreamIsCapturing(stream, &status);
  // For the legacy stream during the capture of a blocking stream, the driver itself refuses the
  // launch.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
  return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool capturing(const StreamWork& work) {
  return stream_is_capturing(work.stream);
}

}  // namespace gantry::fence
