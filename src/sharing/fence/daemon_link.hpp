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

struct Host {
  const FenceLimits* limits;  // all zero until attached: never nullptr
  FenceUsage* usage;          // nullptr until attached
  uint32_t slot;
  uint32_t gpu_count;  // the number of slots in `usage`
  uint32_t attached;   // 1: slot and pages are ours
  // `lock` protects the following.
  Lock lock;
  int socket;
  ino_t
      socket_inode;  // a program may close descriptors that it does not know and reuse the numbers
  uint64_t next_attempt_ns;
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
// Connects again if the connection was lost, at most once a second. Rewrites the rows.
void reattach();
// Call this in the child of a fork, which is not attached yet.
void reset_daemon_link_after_fork();

inline bool attached() {
  return __atomic_load_n(&host.attached, __ATOMIC_ACQUIRE) != 0;
}
inline const FenceLimits& limits() {
  return *__atomic_load_n(&host.limits, __ATOMIC_ACQUIRE);
}
inline uint32_t gate_of(uint32_t gpu) {
  return __atomic_load_n(&limits().gpu[gpu].gate, __ATOMIC_SEQ_CST);
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
// The daemon no longer controls the gates.
inline bool is_daemon_stale() {
  const uint64_t beat = __atomic_load_n(&limits().heartbeat_ns, __ATOMIC_RELAXED);
  const uint64_t now = monotonic_ns();
  return now > beat && now - beat > FENCE_STALE_NS;
}

// Sends a report to the daemon. Never waits: a report that does not fit is dropped, and a lost
// connection is opened again.
void report(FenceEvent event, uint32_t gpu, uint32_t turn, uint64_t value);

}  // namespace gantry::fence
