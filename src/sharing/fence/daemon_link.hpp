// SPDX-License-Identifier: Apache-2.0
// The link to the share daemon as this process sees it: two shared pages and a socket
// (gpu/abi/fence.h). The pages keep their addresses: when the daemon restarts, new ones are mapped
// in their place.
#pragma once

#include "gpu/abi/fence.h"
#include "sharing/fence/lock.hpp"

#include <stdint.h>
#include <sys/types.h>

namespace gantry::fence {

// A program may close descriptors that it does not know and reuse the numbers, so a socket of ours
// is known by its inode as well.
struct OwnSocket {
  int fd;
  ino_t inode;
};

struct Host {
  const FenceLimits* limits;  // what launches read: the daemon's page, or our copy of it
  const FenceLimits* page;    // the daemon's; all zero until attached: never nullptr
  FenceUsage* usage;          // nullptr until attached
  uint32_t slot;
  uint32_t gpu_count;  // the number of slots in `usage`
  uint32_t attached;   // 1: slot and pages are ours
  uint32_t gone;       // 1: the daemon has closed the connection
  // `lock` protects the following.
  Lock lock;
  OwnSocket socket;
  OwnSocket pending;  // a handshake without an answer yet
  uint64_t pending_until_ns;
  uint64_t next_attempt_ns;
  uint64_t next_check_ns;  // of the connection
  void* region;
};
extern Host host;

enum class AttachResult : uint8_t {
  Yes,
  Refused,      // the daemon does not answer, or refuses
  PassThrough,  // the daemon does not answer, and the share allows that
};

// Connects if there is no connection yet. For cuInit: waits some seconds for an answer.
AttachResult attach();
// Connects again if the connection was lost. Never waits: a later call takes the daemon's answer.
// Rewrites the rows.
void reattach();
// Notices that the daemon has closed the connection. Looks at most once a millisecond.
void check_connection();
// Call this in the child of a fork, which is not attached yet.
void reset_daemon_link_after_fork();

// While no daemon controls the gates, launches read a copy of its page, in which this process sets
// the gates itself (pacing.hpp). So a launch costs the same with and without a daemon.
void use_own_gates();
void use_daemon_gates();
void set_own_gate(uint32_t gpu, uint32_t word);  // wakes the threads that wait at it

inline bool attached() {
  return __atomic_load_n(&host.attached, __ATOMIC_ACQUIRE) != 0;
}
inline const FenceLimits& limits() {
  return *__atomic_load_n(&host.limits, __ATOMIC_ACQUIRE);
}
inline const FenceLimits& daemon_page() {
  return *__atomic_load_n(&host.page, __ATOMIC_ACQUIRE);
}
inline bool has_own_gates() {
  return &limits() != &daemon_page();
}
inline uint32_t gate_of(uint32_t gpu) {
  return __atomic_load_n(&limits().gpu[gpu].gate, __ATOMIC_SEQ_CST);
}
inline bool is_shut(uint32_t gate) {
  return (gate & FENCE_GATE_MASK) == FENCE_SHUT;
}
inline bool time_limited() {
  return (__atomic_load_n(&limits().flags, __ATOMIC_RELAXED) & FENCE_TIME_LIMITED) != 0;
}
inline FenceUsageRow& row(uint32_t gpu, uint32_t slot) {
  auto* rows = reinterpret_cast<FenceUsageRow*>(host.usage + 1);
  return rows[static_cast<uint64_t>(gpu) * FENCE_MAX_PROCESSES + slot];
}
// Only if attached, and for a gpu below host.gpu_count.
inline FenceUsageRow& own_row(uint32_t gpu) {
  return row(gpu, __atomic_load_n(&host.slot, __ATOMIC_RELAXED));
}
// How long no daemon has given a sign of life.
inline uint64_t silence_ns() {
  const uint64_t beat = __atomic_load_n(&daemon_page().heartbeat_ns, __ATOMIC_RELAXED);
  const uint64_t now = monotonic_ns();
  return now > beat ? now - beat : 0;
}
// The daemon no longer controls the gates: it is gone, or it hangs.
inline bool is_daemon_stale() {
  if (__atomic_load_n(&host.gone, __ATOMIC_RELAXED) != 0) return true;
  const uint64_t ms = __atomic_load_n(&daemon_page().stale_ms, __ATOMIC_RELAXED);
  return silence_ns() > (ms == 0 ? FENCE_STALE_NS : ms * 1000000U);
}

// Sends a report to the daemon. Never waits: a report that does not fit is dropped, and a lost
// connection is opened again.
void report(FenceEvent event, uint32_t gpu, uint32_t turn, uint64_t value);

}  // namespace gantry::fence
