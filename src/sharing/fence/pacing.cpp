// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/pacing.hpp"

#include "sharing/fence/costs.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/gpu_turn.hpp"
#include "sharing/fence/overhead.hpp"

namespace gantry::fence {
namespace {

// A turn and the pause after it together take this long, unless the turn would be too short to be
// worth the hand-over. So a launch waits much less than 100 ms.
constexpr double kCycleNs = 40.0 * kMillisecond;
constexpr double kShortestTurnNs = 1.0 * kMillisecond;
constexpr double kMostDebtNs = 10000.0 * kMillisecond;

// The GPU time of this process on one GPU: what its part of the time is, minus what it used.
struct Account {
  Lock lock;
  bool on_gpu;  // since last_ns
  bool shut;    // the gate at last_ns
  uint64_t last_ns;
  double credit_ns;  // debt if negative
};
constinit Account accounts[FENCE_MAX_GPUS]{};

uint32_t cap_of(uint32_t gpu) {
  return __atomic_load_n(&daemon_page().gpu[gpu].cap_percent, __ATOMIC_RELAXED);
}

// A daemon's gate is for all processes of the share together. Without a daemon no program divides
// the time among them, so each busy one takes the same part. No program clears the row of one that
// has ended either, so the others then take less than they might.
double own_part(uint32_t gpu) {
  if (!has_own_gates()) return cap_of(gpu) / 100.0;
  uint32_t busy = 0;
  for (uint32_t slot = 0, end = slots(); slot < end; ++slot)
    busy += __atomic_load_n(&row(gpu, slot).busy, __ATOMIC_RELAXED) != 0 ? 1 : 0;
  return cap_of(gpu) / 100.0 / (busy == 0 ? 1 : busy);
}

double larger(double a, double b) {
  return a > b ? a : b;
}

// With this much credit a turn begins; it ends when the credit is used up.
double turn_credit(double part) {
  return larger(kCycleNs * part, kShortestTurnNs) * (1 - part);
}

void update(Account& account, uint32_t gpu, uint32_t gate, double part) {
  const uint64_t now = monotonic_ns();
  const double elapsed = account.last_ns == 0 || now < account.last_ns
                             ? 0
                             : static_cast<double>(now - account.last_ns);
  account.credit_ns += elapsed * (account.on_gpu ? part - 1 : part);
  account.credit_ns = larger(account.credit_ns, -kMostDebtNs);
  if (account.credit_ns > turn_credit(part)) account.credit_ns = turn_credit(part);
  account.last_ns = now;
  account.on_gpu = uses_gpu(gpu, gate);
}

// A daemon opens the gate of a share with a cap only when the share owes nothing.
void forgive_debt(Account& account, uint32_t gate) {
  if (account.shut && !is_shut(gate)) account.credit_ns = larger(account.credit_ns, 0);
}

void shut(uint32_t gpu, uint32_t gate) {
  const uint32_t turn = (gate >> FENCE_TURN_SHIFT) + 1;
  set_own_gate(gpu, turn << FENCE_TURN_SHIFT | FENCE_SHUT);
}

void control(const Account& account, uint32_t gpu, uint32_t gate, double part) {
  if (launches_are_refused(gpu)) {
    if (!is_shut(gate)) shut(gpu, gate);
  } else if (!is_shut(gate)) {
    if (account.credit_ns <= 0 && part < 1) shut(gpu, gate);
  } else if (!account.on_gpu && account.credit_ns >= turn_credit(part)) {
    set_own_gate(gpu, (gate & ~uint32_t{FENCE_GATE_MASK}) | FENCE_OPEN);
  }
}

void follow_daemon_if_any() {
  check_connection();
  if (is_daemon_stale()) reattach();
  const bool stale = is_daemon_stale();
  if (stale == has_own_gates()) return;
  if (stale)
    use_own_gates();
  else
    use_daemon_gates();
}

}  // namespace

void pace(uint32_t gpu) {
  if (!attached() || gpu >= host.gpu_count || gpu >= FENCE_MAX_GPUS) return;
  follow_daemon_if_any();
  if (cap_of(gpu) == 0) return;
  Account& account = accounts[gpu];
  if (!account.lock.try_lock()) return;
  const uint32_t gate = gate_of(gpu);
  const double part = own_part(gpu);
  update(account, gpu, gate, part);
  if (has_own_gates())
    control(account, gpu, gate, part);
  else
    forgive_debt(account, gate);
  account.shut = is_shut(gate);
  account.lock.unlock();
}

bool launches_are_refused(uint32_t gpu) {
  return has_own_gates() && cap_of(gpu) != 0 && silence_ns() > FENCE_REFUSE_NS;
}

void reset_pacing_after_fork() {
  for (Account& account : accounts) account = {};
}

}  // namespace gantry::fence
