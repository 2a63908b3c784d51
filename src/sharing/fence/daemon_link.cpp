// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/daemon_link.hpp"

#include "sharing/fence/gpu_turn.hpp"
#include "sharing/fence/handshake.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/libc.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gantry::fence {
namespace {

constinit FenceLimits nothing{};  // never written, so it uses no memory
constexpr uint64_t kFirstWaitMs = 5000;
constexpr uint64_t kLaterWaitMs = 100;  // a running program must not be delayed by it
constexpr uint64_t kBetweenAttemptsNs = 1000000000U;
constexpr uint64_t kNobodyNs = 2000000U;
constexpr uint64_t kNotYetNs = 20000000U;
constexpr uint64_t kPage = 65536;  // the largest page size of any kernel

constexpr uint64_t whole_pages(uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}
constexpr uint64_t kLimitsBytes = whole_pages(sizeof(FenceLimits));
constexpr uint64_t kUsageBytes =
    whole_pages(sizeof(FenceUsage) + static_cast<uint64_t>(FENCE_MAX_GPUS) * FENCE_MAX_PROCESSES *
                                         sizeof(FenceUsageRow));

constexpr Host nobody() {
  Host none{};
  none.limits = &nothing;
  none.socket = -1;
  return none;
}

// Reserves addresses for both pages once; afterwards only the mappings behind them change.
char* region() {
  if (host.region == nullptr) {
    void* made = mmap(nullptr, kLimitsBytes + kUsageBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made != MAP_FAILED) host.region = made;
  }
  return static_cast<char*>(host.region);
}

bool map_at(char* place, int fd, uint64_t bytes, int protection) {
  return mmap(place, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
}

// Called with the lock held; no rows are written meanwhile.
bool take(const Handshake& said) {
  const Guard guard(ledger_lock());
  char* place = region();
  if (place == nullptr) return false;
  const uint32_t gpus = said.gpu_count;
  if (!map_at(place, said.limits, sizeof(FenceLimits), PROT_READ) ||
      !map_at(place + kLimitsBytes, said.usage, fence_usage_size(gpus), PROT_READ | PROT_WRITE))
    return false;
  host.usage = reinterpret_cast<FenceUsage*>(place + kLimitsBytes);
  host.gpu_count = gpus;
  __atomic_store_n(&host.slot, said.slot, __ATOMIC_RELAXED);
  __atomic_store_n(&host.limits, reinterpret_cast<const FenceLimits*>(place), __ATOMIC_RELEASE);
  struct stat status {};
  host.socket = said.socket;
  host.socket_inode = file_status(said.socket, status) ? status.st_ino : 0;
  rewrite_rows();
  show_demand();
  return true;
}

bool ours(int fd) {
  struct stat status {};
  return fd >= 0 && file_status(fd, status) && S_ISSOCK(status.st_mode) &&
         status.st_ino == host.socket_inode;
}

void drop_socket() {
  if (ours(host.socket)) close(host.socket);
  host.socket = -1;
}

// While the daemon is away, the processes of the share continue with the old pages. A process that
// moves to the new daemon's pages does not see the others there, nor do they see it. So all should
// move soon, and a check that costs nothing is made often.
uint64_t pause_after(HandshakeResult answer) {
  if (answer == HandshakeResult::NoDaemon) return kNobodyNs;
  return answer == HandshakeResult::NotYet ? kNotYetNs : kBetweenAttemptsNs;
}

// Called with the lock held.
HandshakeResult connect_anew(uint64_t wait_ms) {
  Handshake said{};
  const HandshakeResult answer = perform_handshake(FENCE_WORKER, wait_ms, said);
  host.next_attempt_ns = monotonic_ns() + pause_after(answer);
  if (answer != HandshakeResult::Welcome) return answer;
  drop_socket();
  const bool taken = take(said);
  close(said.limits);
  close(said.usage);
  if (taken) return HandshakeResult::Welcome;
  close(said.socket);
  return HandshakeResult::No;
}

// For cuInit, which may wait while a new daemon reads NVML.
bool connect_first() {
  const uint64_t until = monotonic_ns() + kFirstWaitMs * 1000000U;
  HandshakeResult answer = connect_anew(kFirstWaitMs);
  while (answer == HandshakeResult::NotYet && monotonic_ns() < until) {
    sleep_for_ns(kNotYetNs);
    answer = connect_anew(kFirstWaitMs);
  }
  return answer == HandshakeResult::Welcome;
}

bool send_report(const FenceReport& message) {
  if (!ours(host.socket)) return false;
  const ssize_t sent = send(host.socket, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
}

}  // namespace

constinit Host host = nobody();

AttachResult attach() {
  const Guard guard(host.lock);
  if (attached()) return AttachResult::Yes;
  if (connect_first()) {
    __atomic_store_n(&host.attached, 1, __ATOMIC_RELEASE);
    return AttachResult::Yes;
  }
  return access(FENCE_DIRECTORY "/pass-through", F_OK) == 0 ? AttachResult::PassThrough
                                                            : AttachResult::Refused;
}

void reattach() {
  if (!attached()) return;
  const Guard guard(host.lock);
  if (monotonic_ns() < host.next_attempt_ns) return;
  connect_anew(kLaterWaitMs);
}

void reset_daemon_link_after_fork() {
  drop_socket();
  if (host.region != nullptr) munmap(host.region, kLimitsBytes + kUsageBytes);
  host = nobody();
}

void report(FenceEvent event, uint32_t gpu, uint32_t turn, uint64_t value) {
  if (!attached()) return;
  const FenceReport message{.event = static_cast<uint32_t>(event),
                            .gpu = gpu,
                            .turn = turn,
                            .reserved = 0,
                            .value = value};
  const Guard guard(host.lock);
  if (send_report(message)) return;
  if (monotonic_ns() < host.next_attempt_ns ||
      connect_anew(kLaterWaitMs) != HandshakeResult::Welcome)
    return;
  send_report(message);
}

}  // namespace gantry::fence
