// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/shared_pages.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace gantry::daemon {
namespace {

template <class T>
T load(T& value) {
  return std::atomic_ref<T>(value).load(std::memory_order_acquire);
}

template <class T>
void store(T& value, T to) {
  std::atomic_ref<T>(value).store(to, std::memory_order_seq_cst);
}

void wake_all(std::uint32_t& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Result<sys::UniqueFd> make_memory(const char* name, std::size_t size) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = ::memfd_create(name, kFlags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create(name, kFlags);  // before Linux 6.3
  if (fd < 0) return Error::sys(errno, "memfd_create");
  sys::UniqueFd memory(fd);
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) return Error::sys(errno, "ftruncate");
  return memory;
}

Result<Mapping> map(int fd, std::size_t size) {
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return Error::sys(errno, "mmap");
  return Mapping(address, size);
}

Status seal(int fd, int seals) {
  if (::fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return {};
  const int error = errno;
  if (error == EINVAL)
    return Error(Errc::Unsupported,
                 "this kernel cannot seal memory against writers (F_SEAL_FUTURE_WRITE): shares "
                 "need Linux 5.1 or later");
  return Error::sys(error, "fcntl F_ADD_SEALS");
}

}  // namespace

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

void Mapping::swap(Mapping& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
}

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Result<SharedPages> SharedPages::make(std::string_view share, std::span<const GpuPageValues> gpus) {
  if (gpus.empty() || gpus.size() > FENCE_MAX_GPUS)
    return Error(Errc::Invalid, fmt::format("a share must have 1 to {} GPUs, not {}",
                                            static_cast<int>(FENCE_MAX_GPUS), gpus.size()));
  SharedPages pages;
  pages.gpu_count_ = static_cast<std::uint32_t>(gpus.size());
  GANTRY_TRY(pages.limits_fd_, make_memory("gantry-limits", pages.limits_size()));
  GANTRY_TRY(pages.usage_fd_, make_memory("gantry-usage", pages.usage_size()));
  GANTRY_TRY(pages.limits_, map(pages.limits_fd_.get(), pages.limits_size()));
  GANTRY_TRY(pages.usage_, map(pages.usage_fd_.get(), pages.usage_size()));
  GANTRY_CHECK(seal(pages.limits_fd_.get(), F_SEAL_FUTURE_WRITE));
  GANTRY_CHECK(seal(pages.usage_fd_.get(), 0));
  auto& limits = pages.limits();
  limits.magic = FENCE_MAGIC;
  limits.version = FENCE_VERSION;
  limits.gpu_count = pages.gpu_count_;
  std::memcpy(limits.share, share.data(), std::min(share.size(), sizeof limits.share - 1));
  for (std::uint32_t gpu = 0; gpu < pages.gpu_count_; ++gpu) pages.set_gpu(gpu, gpus[gpu]);
  pages.heartbeat(monotonic_ns());
  return pages;
}

void SharedPages::set_flags(std::uint32_t flags) {
  store(limits().flags, flags);
}

void SharedPages::set_gpu(std::uint32_t gpu, const GpuPageValues& values) {
  auto& target = limits().gpu[gpu];
  std::copy(values.uuid.begin(), values.uuid.end(), target.uuid);
  store(target.memory_limit, values.memory_limit);
  store(target.memory_total, values.memory_total);
  store(target.context_estimate, values.context_estimate);
  store(target.queue_ns, values.queue_ns);
  store(target.share_percent, values.share_percent);
  store(target.cap_percent, values.cap_percent);
}

std::uint64_t SharedPages::memory_limit(std::uint32_t gpu) const {
  return limits().gpu[gpu].memory_limit;
}

void SharedPages::heartbeat(std::uint64_t now_ns) {
  store(limits().heartbeat_ns, now_ns);
}

void SharedPages::set_stale_after(std::chrono::milliseconds age) {
  heartbeat(monotonic_ns());
  store(limits().stale_ms, static_cast<std::uint32_t>(age.count()));
}

void SharedPages::set_gate(std::uint32_t gpu, std::uint32_t word) {
  auto& target = limits().gpu[gpu].gate;
  if (target == word) return;
  store(target, word);
  wake_all(target);
}

std::uint32_t SharedPages::gate(std::uint32_t gpu) const {
  return limits().gpu[gpu].gate;
}

void SharedPages::set_overhead(std::uint32_t gpu, std::uint64_t bytes) {
  store(limits().gpu[gpu].memory_overhead, bytes);
}

std::uint64_t SharedPages::overhead(std::uint32_t gpu) const {
  return limits().gpu[gpu].memory_overhead;
}

void SharedPages::set_reading_time(std::uint32_t gpu, std::uint64_t asked_ns) {
  store(limits().gpu[gpu].reading_ns, asked_ns);
}

std::uint64_t SharedPages::used(std::uint32_t slot, std::uint32_t gpu) const {
  return limits().process[slot].used[gpu];
}

void SharedPages::set_used(std::uint32_t slot, std::uint32_t gpu, std::uint64_t bytes) {
  store(limits().process[slot].used[gpu], bytes);
}

void SharedPages::set_seen_contexts(std::uint32_t slot, std::uint32_t gpu, std::uint32_t contexts) {
  store(limits().process[slot].seen_contexts[gpu], contexts);
}

FenceUsageRow& SharedPages::row(std::uint32_t slot, std::uint32_t gpu) const {
  auto* rows =
      reinterpret_cast<FenceUsageRow*>(static_cast<std::byte*>(usage_.get()) + sizeof(FenceUsage));
  return rows[std::size_t{gpu} * FENCE_MAX_PROCESSES + slot];
}

void SharedPages::take_slot(std::uint32_t slot, std::uint32_t host_pid, std::uint32_t pid) {
  free_slot(slot);  // a tenant may have written anything into a free row
  taken_.at(slot) = true;
  show_slots_in_use();
  store(limits().process[slot].pid, pid);
  store(limits().process[slot].host_pid, host_pid);
}

void SharedPages::clear_row(std::uint32_t slot, std::uint32_t gpu) {
  auto& process = limits().process[slot];
  store(process.used[gpu], std::uint64_t{0});
  store(process.seen_contexts[gpu], std::uint32_t{0});
  auto& old = row(slot, gpu);
  for (auto* value : {&old.held, &old.pending, &old.launches, &old.cost_ns, &old.drained_ns,
                      &old.managed, &old.begun, &old.ended})
    store(*value, std::uint64_t{0});
  for (auto* value : {&old.drained, &old.busy, &old.waiting, &old.contexts})
    store(*value, std::uint32_t{0});
}

void SharedPages::free_slot(std::uint32_t slot) {
  auto& process = limits().process[slot];
  store(process.host_pid, std::uint32_t{0});
  store(process.pid, std::uint32_t{0});
  for (std::uint32_t gpu = 0; gpu < gpu_count_; ++gpu) clear_row(slot, gpu);
  taken_.at(slot) = false;
  show_slots_in_use();
  free_orphaned_lock();
}

// Raised before the process learns its slot, so that no sum misses its row.
void SharedPages::show_slots_in_use() {
  std::uint32_t used = FENCE_MAX_PROCESSES;
  while (used > 0 && !taken_.at(used - 1)) --used;
  slots_in_use_ = used;
  store(limits().slots_in_use, used);
}

ProcessUsage SharedPages::usage(std::uint32_t slot, std::uint32_t gpu) const {
  auto& from = row(slot, gpu);
  const auto total = limits().gpu[gpu].memory_total;
  const auto held = std::min(load(from.held), total);
  return {.held = held,
          .pending = std::min(load(from.pending), total),
          .managed = std::min(load(from.managed), held),
          .launches = load(from.launches),
          .cost_ns = std::min(load(from.cost_ns), kMaxLaunchNs),
          .drained_ns = std::min(load(from.drained_ns), monotonic_ns()),
          .drained = load(from.drained),
          .waiting = std::min(load(from.waiting), kMaxThreads),
          .contexts = std::min(load(from.contexts), kMaxContexts),
          .busy = load(from.busy) != 0,
          .ended = load(from.ended),
          .begun = load(from.begun)};
}

void SharedPages::free_orphaned_lock() {
  auto& lock = header().lock;
  auto owner = load(lock);
  if (owner == 0) return;
  if (owner <= FENCE_MAX_PROCESSES && taken_.at(owner - 1)) return;
  if (std::atomic_ref<std::uint32_t>(lock).compare_exchange_strong(owner, 0)) wake_all(lock);
}

}  // namespace gantry::daemon
