// SPDX-License-Identifier: Apache-2.0
// cuInit: here a process attaches to its share; nothing happens earlier. And fork: the child is a
// separate process, which attaches when it starts CUDA itself.
#include "sharing/fence/allocations.hpp"
#include "sharing/fence/contexts.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gate.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/graphs.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/libc.hpp"
#include "sharing/fence/overhead.hpp"
#include "sharing/fence/pools.hpp"
#include "sharing/fence/reclaim.hpp"
#include "sharing/fence/vmm.hpp"

namespace gantry::fence {
namespace {

void in_child() {
  reset_gate_after_fork();
  reset_contexts_after_fork();
  reset_graphs_after_fork();
  reset_allocations_after_fork();
  reset_pools_after_fork();
  reset_settle_lock_after_fork();
  reset_vmm_after_fork();
  reset_ledger_after_fork();
  reset_overhead_after_fork();
  reset_gpus_after_fork();
  reset_daemon_link_after_fork();
}

constinit uint32_t fork_watched = 0;

void watch_for_fork() {
  if (__atomic_exchange_n(&fork_watched, 1, __ATOMIC_ACQ_REL) == 0)
    pthread_atfork(nullptr, nullptr, &in_child);
}

}  // namespace
}  // namespace gantry::fence

// Refuses with "the system is not ready": PyTorch and others print this text, and nothing has
// started.
CUresult cuInit(unsigned int flags) {
  using namespace gantry::fence;
  if (!attached()) {
    watch_for_fork();
    if (attach() == AttachResult::Refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  }
  const CUresult result = real().cuInit(flags);
  if (result == CUDA_SUCCESS) find_gpus();
  return result;
}
