// SPDX-License-Identifier: Apache-2.0
// The host's side as this process sees it: two shared pages and a socket (abi.h). The pages keep
// their addresses when the keeper is restarted and new ones are mapped in their place.
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
  uint32_t gpu_count;  // what `usage` has room for
  uint32_t attached;   // 1: slot and pages are ours
  // Below: under `lock`.
  Lock lock;
  int socket;
  ino_t socket_inode;  // a program may close descriptors that it does not know, and reuse numbers
  uint64_t next_attempt_ns;
  void* region;
};
extern Host host;

enum class AttachResult : uint8_t {
  Yes,
  Refused,      // nobody answers, or no
  PassThrough,  // nobody answers, and the host has said that this may be
};

// Connects where we are not connected yet. For cuInit: waits some seconds for an answer.
AttachResult attach();
// Connects again when the host was lost, at most once a second. Writes the rows anew.
void reattach();
// In the child of a fork: it is nobody yet.
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
// Only when attached, and for a gpu below host.gpu_count.
inline FenceUsageRow& own_row(uint32_t gpu) {
  return row(gpu, __atomic_load_n(&host.slot, __ATOMIC_RELAXED));
}
// Nobody guards the gates any more.
inline bool is_daemon_stale() {
  const uint64_t beat = __atomic_load_n(&limits().heartbeat_ns, __ATOMIC_RELAXED);
  const uint64_t now = monotonic_ns();
  return now > beat && now - beat > FENCE_STALE_NS;
}

// Tells the keeper. Never waits; what does not fit is lost, and a lost connection is made anew.
void report(FenceEvent event, uint32_t gpu, uint32_t turn, uint64_t value);

}  // namespace gantry::fence
