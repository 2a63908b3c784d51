// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/handshake.hpp"
#include "sharing/fence/lock.hpp"
#include "sharing/fence/nvml/pages_internal.hpp"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gantry::fence::nvml {
namespace {

constexpr uint64_t kWaitMs = 1000;
constexpr uint64_t kBetweenAttemptsNs = 1000000000;

struct State {
  int32_t owner = 0;  // the process whose thread holds the lock
  uint64_t next_attempt_ns = 0;
  Pages pages;
};
constinit State state{};

// The lock holds the process's pid: a forked child that inherits it locked, by a thread that it
// does not have, takes it over.
class GpuTurn {
 public:
  GpuTurn() {
    const int32_t self = getpid();
    for (;;) {
      int32_t owner = 0;
      if (take(owner, self) || (owner != self && take(owner, self))) return;
      const timespec moment = {0, 100000};
      nanosleep(&moment, nullptr);
    }
  }
  ~GpuTurn() { __atomic_store_n(&state.owner, 0, __ATOMIC_RELEASE); }
  GpuTurn(const GpuTurn&) = delete;
  GpuTurn& operator=(const GpuTurn&) = delete;

 private:
  static bool take(int32_t& expected, int32_t self) {
    return __atomic_compare_exchange_n(&state.owner, &expected, self, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
  }
};

bool map(const Handshake& said, Pages& out) {
  void* limits = mmap(nullptr, sizeof(FenceLimits), PROT_READ, MAP_SHARED, said.limits, 0);
  void* usage =
      mmap(nullptr, fence_usage_size(said.gpu_count), PROT_READ, MAP_SHARED, said.usage, 0);
  if (limits != MAP_FAILED && usage != MAP_FAILED) {
    out = {static_cast<const FenceLimits*>(limits), static_cast<const FenceUsage*>(usage),
           said.gpu_count, true};
    return true;
  }
  if (limits != MAP_FAILED) munmap(limits, sizeof(FenceLimits));
  if (usage != MAP_FAILED) munmap(usage, fence_usage_size(said.gpu_count));
  return false;
}

// An observer sends nothing more, so no descriptor of ours stays open in the program.
void attach() {
  const int saved = errno;
  Handshake said{};
  if (perform_handshake(FENCE_OBSERVER, kWaitMs, said) == HandshakeResult::Welcome) {
    if (!map(said, state.pages)) state.pages.fenced = true;
    close(said.socket);
    close(said.limits);
    close(said.usage);
  } else if (access(FENCE_SOCKET, F_OK) == 0 &&
             access(FENCE_DIRECTORY "/pass-through", F_OK) != 0) {
    state.pages.fenced = true;
  }
  errno = saved;
}

bool is_current(const Pages& pages, uint64_t now) {
  if (pages.limits == nullptr) return false;
  const uint64_t beat = __atomic_load_n(&pages.limits->heartbeat_ns, __ATOMIC_RELAXED);
  return now <= beat || now - beat <= FENCE_STALE_NS;
}

}  // namespace

Pages share_pages() {
  const GpuTurn turn;
  const uint64_t now = monotonic_ns();
  if (!is_current(state.pages, now) && now >= state.next_attempt_ns) {
    attach();
    state.next_attempt_ns = monotonic_ns() + kBetweenAttemptsNs;
  }
  return state.pages;
}

}  // namespace gantry::fence::nvml
