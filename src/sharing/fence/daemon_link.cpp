// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/daemon_link.hpp"

#include "sharing/fence/gpu_turn.hpp"
#include "sharing/fence/handshake.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/libc.hpp"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gantry::fence {
namespace {

constinit FenceLimits nothing{};  // never written, so it uses no memory
constinit FenceLimits own{};      // uses memory only after a daemon was lost
constexpr uint64_t kFirstWaitMs = 5000;
constexpr uint64_t kBetweenChecksNs = 1000000U;
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

constexpr OwnSocket kNoSocket = {-1, 0};

constexpr Host no_host() {
  Host none{};
  none.limits = none.page = &nothing;
  none.socket = none.pending = kNoSocket;
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

OwnSocket as_own(int fd) {
  struct stat status {};
  return {fd, file_status(fd, status) ? status.st_ino : 0};
}

bool ours(const OwnSocket& socket) {
  struct stat status {};
  return socket.fd >= 0 && file_status(socket.fd, status) && S_ISSOCK(status.st_mode) &&
         status.st_ino == socket.inode;
}

void drop(OwnSocket& socket) {
  if (ours(socket)) close(socket.fd);
  socket = kNoSocket;
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
  __atomic_store_n(&host.gone, 0, __ATOMIC_RELAXED);
  const auto* page = reinterpret_cast<const FenceLimits*>(place);
  __atomic_store_n(&host.page, page, __ATOMIC_RELEASE);
  __atomic_store_n(&host.limits, page, __ATOMIC_RELEASE);
  host.socket = as_own(said.socket);
  rewrite_rows();
  show_demand();
  return true;
}

// While the daemon is away, the processes of the share continue with the old pages. A process that
// moves to the new daemon's pages does not see the others there, nor do they see it. So all should
// move soon, and a check that costs nothing is made often.
uint64_t pause_after(HandshakeResult answer) {
  if (answer == HandshakeResult::NoDaemon) return kNobodyNs;
  return answer == HandshakeResult::NotYet ? kNotYetNs : kBetweenAttemptsNs;
}

bool send_report(const FenceReport& message) {
  if (!ours(host.socket)) return false;
  const ssize_t sent = send(host.socket.fd, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
}

// A new daemon reads the rows only now and then; until it knows of our work, it leaves the gate
// open.
void report_demand() {
  for (uint32_t gpu = 0; gpu < host.gpu_count && gpu < FENCE_MAX_GPUS; ++gpu) {
    if (__atomic_load_n(&own_row(gpu).busy, __ATOMIC_RELAXED) != 0)
      send_report({.event = FENCE_ACTIVE, .gpu = gpu, .turn = 0, .reserved = 0, .value = 0});
  }
}

// Called with the lock held.
HandshakeResult take_answer(HandshakeResult answer, const Handshake& said) {
  host.next_attempt_ns = monotonic_ns() + pause_after(answer);
  if (answer != HandshakeResult::Welcome) return answer;
  drop(host.socket);
  const bool taken = take(said);
  close(said.limits);
  close(said.usage);
  if (taken) report_demand();
  if (taken) return HandshakeResult::Welcome;
  close(said.socket);
  return HandshakeResult::No;
}

// For cuInit, which may wait while a new daemon reads NVML.
bool connect_first() {
  const uint64_t until = monotonic_ns() + kFirstWaitMs * 1000000U;
  for (;;) {
    Handshake said{};
    const HandshakeResult answer =
        take_answer(perform_handshake(FENCE_WORKER, kFirstWaitMs, said), said);
    if (answer == HandshakeResult::Welcome) return true;
    if (answer != HandshakeResult::NotYet || monotonic_ns() > until) return false;
    sleep_for_ns(kNotYetNs);
  }
}

// The daemon sends nothing after its welcome, so only the end of the connection can be read.
bool has_ended(const OwnSocket& socket) {
  char byte = 0;
  const ssize_t got = recv(socket.fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

// Called with the lock held. True if the daemon of the current pages exists, even if it hangs.
bool is_connected() {
  return ours(host.socket) && !has_ended(host.socket);
}

void finish_pending() {
  Handshake said{};
  const OwnSocket waiting = host.pending;
  if (!ours(waiting)) {
    host.pending = kNoSocket;
    return;
  }
  const HandshakeResult answer = finish_handshake(waiting.fd, said);
  if (answer != HandshakeResult::Pending) {
    host.pending = kNoSocket;
    take_answer(answer, said);
  } else if (monotonic_ns() > host.pending_until_ns) {
    drop(host.pending);
  }
}

// Called with the lock held.
void advance_handshake() {
  if (host.pending.fd >= 0) return finish_pending();
  const uint64_t now = monotonic_ns();
  if (now < host.next_attempt_ns || is_connected()) return;
  HandshakeResult answer{};
  const int fd = start_handshake(FENCE_WORKER, answer);
  if (fd < 0) {
    host.next_attempt_ns = now + pause_after(answer);
    return;
  }
  host.pending = as_own(fd);
  host.pending_until_ns = now + kBetweenAttemptsNs;
}

}  // namespace

constinit Host host = no_host();

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
  advance_handshake();
}

void check_connection() {
  const Guard guard(host.lock);
  const uint64_t now = monotonic_ns();
  if (now < host.next_check_ns) return;
  host.next_check_ns = now + kBetweenChecksNs;
  if (ours(host.socket) && has_ended(host.socket))
    __atomic_store_n(&host.gone, 1, __ATOMIC_RELAXED);
}

namespace {

void copy_words(FenceLimits& to, const FenceLimits& from, uint64_t bytes) {
  auto* target = reinterpret_cast<uint64_t*>(&to);
  const auto* source = reinterpret_cast<const uint64_t*>(&from);
  for (uint64_t i = 0; i < bytes / sizeof(uint64_t); ++i)
    __atomic_store_n(&target[i], __atomic_load_n(&source[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

// The threads that wait at the gates of this page look again.
void wake_waiting(const FenceLimits& page) {
  for (uint32_t gpu = 0; gpu < host.gpu_count && gpu < FENCE_MAX_GPUS; ++gpu)
    futex_wake(const_cast<uint32_t*>(&page.gpu[gpu].gate), kAcrossProcesses, INT_MAX);
}

}  // namespace

// The turns of our own gates have numbers that the daemon does not use, so that no report of one
// answers the other.
void use_own_gates() {
  constexpr uint32_t kOwnTurns = 1U << 31U;
  const Guard guard(host.lock);
  if (has_own_gates()) return;
  const FenceLimits& page = daemon_page();
  const uint32_t used = __atomic_load_n(&page.slots_in_use, __ATOMIC_ACQUIRE);
  const uint64_t processes = used < FENCE_MAX_PROCESSES ? used : uint64_t{FENCE_MAX_PROCESSES};
  copy_words(own, page, offsetof(FenceLimits, process) + processes * sizeof(FenceProcess));
  for (uint32_t gpu = 0; gpu < host.gpu_count && gpu < FENCE_MAX_GPUS; ++gpu) {
    const uint32_t gate = own.gpu[gpu].gate;
    const bool shut = own.gpu[gpu].cap_percent != 0 && is_shut(gate);
    const uint32_t turn = (gate & ~uint32_t{FENCE_GATE_MASK}) | kOwnTurns;
    __atomic_store_n(&own.gpu[gpu].gate, shut ? turn | FENCE_SHUT : turn, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&host.limits, &own, __ATOMIC_RELEASE);
  wake_waiting(page);
}

void use_daemon_gates() {
  const Guard guard(host.lock);
  if (!has_own_gates()) return;
  __atomic_store_n(&host.limits, &daemon_page(), __ATOMIC_RELEASE);
  wake_waiting(own);
}

void set_own_gate(uint32_t gpu, uint32_t word) {
  uint32_t* gate = &own.gpu[gpu].gate;
  __atomic_store_n(gate, word, __ATOMIC_SEQ_CST);
  futex_wake(gate, kAcrossProcesses, INT_MAX);
}

void reset_daemon_link_after_fork() {
  drop(host.socket);
  drop(host.pending);
  if (host.region != nullptr) munmap(host.region, kLimitsBytes + kUsageBytes);
  host = no_host();
}

void report(FenceEvent event, uint32_t gpu, uint32_t turn, uint64_t value) {
  if (!attached()) return;
  const FenceReport message{.event = static_cast<uint32_t>(event),
                            .gpu = gpu,
                            .turn = turn,
                            .reserved = 0,
                            .value = value};
  const Guard guard(host.lock);
  if (!send_report(message)) advance_handshake();
}

}  // namespace gantry::fence
