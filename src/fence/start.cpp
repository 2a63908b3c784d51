// SPDX-License-Identifier: Apache-2.0
// cuInit: here a process attaches to its share; nothing happens earlier. And fork: the child is a
// process of its own, which attaches when it starts CUDA itself.
#include "fence/contexts.hpp"
#include "fence/driver.hpp"
#include "fence/gate.hpp"
#include "fence/gpus.hpp"
#include "fence/graphs.hpp"
#include "fence/host.hpp"
#include "fence/ledger.hpp"
#include "fence/libc.hpp"
#include "fence/memory.hpp"
#include "fence/overhead.hpp"
#include "fence/pools.hpp"
#include "fence/reclaim.hpp"
#include "fence/vmm.hpp"

namespace gantry::fence {
namespace {

void in_child() {
  forget_gate();
  forget_contexts();
  forget_graphs();
  forget_memory();
  forget_pools();
  forget_settling();
  forget_vmm();
  forget_ledger();
  forget_overhead();
  forget_gpus();
  forget_host();
}

constinit uint32_t fork_watched = 0;

void watch_for_fork() {
  if (__atomic_exchange_n(&fork_watched, 1, __ATOMIC_ACQ_REL) == 0)
    pthread_atfork(nullptr, nullptr, &in_child);
}

}  // namespace
}  // namespace gantry::fence

// Refused as "the system is not ready": PyTorch and others print its text, and nothing has started.
CUresult cuInit(unsigned int flags) {
  using namespace gantry::fence;
  if (!attached()) {
    watch_for_fork();
    if (attach() == Attached::Refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  }
  const CUresult result = real().cuInit(flags);
  if (result == CUDA_SUCCESS) find_gpus();
  return result;
}
