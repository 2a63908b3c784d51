// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/completion_thread.hpp"

#include "sharing/fence/costs.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpu_turn.hpp"
#include "sharing/fence/libc.hpp"
#include "sharing/fence/outstanding_work.hpp"
#include "sharing/fence/pacing.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

namespace gantry::fence {
namespace {

constexpr uint64_t kTickNs = kMillisecond;
constexpr uint32_t kTicksUntilAsleep = 16;
constexpr uint64_t kAsleepNs = 1000 * kMillisecond;

struct Followers {
  // Held during calls of the driver: the end of the process waits for it.
  Lock asking;
  std::atomic<uint32_t> over;  // the driver is shutting down
  std::atomic<uint32_t> watching_exit;
};
constinit Followers followers{};

// Registered after the driver's own handlers, so it runs before them. After that, the thread
// touches nothing that they free.
void at_exit() {
  followers.over.store(1, std::memory_order_seq_cst);
  for (int i = 0; i < 200 && !followers.asking.try_lock(); ++i) {
    sleep_for_ns(kMillisecond / 2);
  }
}

bool over() {
  return followers.over.load(std::memory_order_seq_cst) != 0;
}

// False if the driver is gone.
bool read_outstanding(uint32_t gpu, UnmarkedLaunches tails, OutstandingWork& left) {
  const Guard guard(followers.asking);
  if (over()) return false;
  left = outstanding(gpu, tails);
  return true;
}

// At the end of a turn: reports when the last work has ended.
bool drain(uint32_t gpu, uint32_t gate) {
  CompletionPoller lookout(PollUrgency::Urgent);
  while (gate_of(gpu) == gate && time_limited()) {
    OutstandingWork left;
    if (!read_outstanding(gpu, UnmarkedLaunches::Mark, left)) return false;
    if (left.none()) {
      report_drained(gpu, gate);
      return true;
    }
    lookout.wait(left.expected_ns);
    pace(gpu);  // the last work may be long, and the daemon may be gone before it ends
  }
  return true;
}

class Follower {
 public:
  explicit Follower(uint32_t gpu) : gpu_(gpu), turn_(turn_of(gpu)) {}

  // Polls once; false if there is nothing more to poll.
  bool step() {
    if (over()) return false;
    pace(gpu_);
    if (turn_.demand.load(std::memory_order_seq_cst) == Demand::Idle) return rest();
    idle_ticks_ = 0;
    const uint32_t gate = gate_of(gpu_);
    if (is_shut(gate) && gate != drained_gate_) {
      if (!drain(gpu_, gate)) return false;
      drained_gate_ = gate;
      return true;
    }
    if (!watch()) return false;
    futex_wait(&limits().gpu[gpu_].gate, gate, kAcrossProcesses, kTickNs);
    return true;
  }

 private:
  // No work: polls on for a while, because the next launch may come soon and waking this thread
  // would cost it a microsecond; then sleeps until it is woken.
  bool rest() {
    const uint32_t wake_futex = turn_.wake_futex.load(std::memory_order_seq_cst);
    if (++idle_ticks_ < kTicksUntilAsleep) {
      futex_wait(&limits().gpu[gpu_].gate, gate_of(gpu_), kAcrossProcesses, kTickNs);
      return true;
    }
    turn_.asleep.store(1, std::memory_order_seq_cst);
    if (turn_.demand.load(std::memory_order_seq_cst) == Demand::Idle)
      futex_wait(reinterpret_cast<const uint32_t*>(&turn_.wake_futex), wake_futex, kWithinProcess,
                 kAsleepNs);
    turn_.asleep.store(0, std::memory_order_seq_cst);
    return true;
  }

  // Work that ends while no thread waits for it.
  bool watch() {
    const uint64_t begun = launches_begun(gpu_);
    const bool still = begun == begun_before_;
    begun_before_ = begun;
    if (!still || turn_.pacing.load(std::memory_order_relaxed) != 0) return true;
    OutstandingWork left;
    if (!read_outstanding(gpu_, UnmarkedLaunches::Mark, left)) return false;
    if (left.none()) report_if_idle(gpu_, IdleHint::Noticed);
    return true;
  }

  uint32_t gpu_;
  GpuTurn& turn_;
  uint32_t drained_gate_ = 0;
  uint32_t idle_ticks_ = 0;
  uint64_t begun_before_ = 0;
};

void* follow(void* argument) {
  const auto gpu = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(argument));
  prctl(PR_SET_NAME, "gantry-fence");
  prctl(PR_SET_TIMERSLACK, 1000UL);
  // Our calls must not end captures of other threads.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  real().cuThreadExchangeStreamCaptureMode(&mode);
  Follower follower(gpu);
  while (follower.step()) {
  }
  return nullptr;
}

void make_follower(uint32_t gpu) {
  GpuTurn& turn = turn_of(gpu);
  uint32_t none = 0;
  if (!turn.follower.compare_exchange_strong(none, 1)) return;
  if (followers.watching_exit.exchange(1) == 0) atexit(&at_exit);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  void* argument = reinterpret_cast<void*>(static_cast<uintptr_t>(gpu));
  if (pthread_create(&thread, nullptr, &follow, argument) == 0)
    pthread_detach(thread);
  else
    turn.follower.store(0);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void wake_completion_thread(uint32_t gpu) {
  GpuTurn& turn = turn_of(gpu);
  if (turn.follower.load(std::memory_order_relaxed) == 0) make_follower(gpu);
  if (turn.asleep.load(std::memory_order_seq_cst) == 0) return;
  turn.wake_futex.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(reinterpret_cast<uint32_t*>(&turn.wake_futex), kWithinProcess, 1);
}

void reset_completion_threads_after_fork() {
  followers.asking.reset();
}

namespace {

constexpr uint64_t kWakeNs = 80 * kMicrosecond;  // a sleep may end this much too late

uint64_t half_of_expected(uint64_t expected_ns) {
  return expected_ns > 2 * kWakeNs ? (expected_ns - kWakeNs) / 2 : 0;
}

// Expectations are wrong if another share used the GPU meanwhile. So a sleep is only a small part
// of the time already waited, whatever is expected. Work that ends within the first millisecond, as
// most does, is noticed at once.
uint64_t urgent_sleep(uint64_t expected_ns, uint64_t waited_ns) {
  const uint64_t part_ns = waited_ns > kMillisecond ? waited_ns / 16 : 0;
  const uint64_t half_ns = half_of_expected(expected_ns);
  if (half_ns == 0 && waited_ns > 2 * kMillisecond)
    return part_ns;  // it takes longer than expected
  return part_ns < half_ns ? part_ns : half_ns;
}

uint64_t easy_sleep(uint64_t expected_ns, uint64_t waited_ns) {
  const uint64_t half_ns = half_of_expected(expected_ns);
  if (half_ns == 0) return waited_ns > 300 * kMicrosecond ? 20 * kMicrosecond : 0;
  return half_ns < kMillisecond ? half_ns : kMillisecond;
}

}  // namespace

void CompletionPoller::wait(uint64_t expected_ns) {
  const uint64_t now_ns = monotonic_ns();
  if (since_ns_ == 0) since_ns_ = now_ns;
  const uint64_t waited_ns = now_ns - since_ns_;
  const uint64_t sleep_ns = haste_ == PollUrgency::Urgent ? urgent_sleep(expected_ns, waited_ns)
                                                          : easy_sleep(expected_ns, waited_ns);
  if (sleep_ns != 0) return sleep_for_ns(sleep_ns);
  for (int i = 0; i < 8; ++i) cpu_relax();
}

}  // namespace gantry::fence
