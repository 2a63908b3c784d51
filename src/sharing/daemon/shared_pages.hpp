// SPDX-License-Identifier: Apache-2.0
// The host's side of the two shared-memory pages of a share (gpu/abi/fence.h). Only this code
// writes the limits. Each value that tenants write is copied out once and clamped, so every
// function here returns a sane answer for any bytes in that page.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"
#include "gpu/abi/fence.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gantry::daemon {

// A mapping of shared memory with one owner.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, std::size_t size) : address_(address), size_(size) {}
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    Mapping(std::move(other)).swap(*this);
    return *this;
  }
  ~Mapping();
  void swap(Mapping& other) noexcept;
  void* get() const { return address_; }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

// One GPU of a share, as tenants see it.
struct GpuPageValues {
  std::array<std::uint8_t, 16> uuid{};
  std::uint64_t memory_limit = UINT64_MAX;
  std::uint64_t memory_total = 0;
  std::uint64_t context_estimate = 0;
  std::uint64_t queue_ns = 0;
  std::uint32_t share_percent = 0;
  std::uint32_t cap_percent = 0;  // 0: no cap
};

// What a process reports about itself on one GPU. The values are within bounds but not verified.
struct ProcessUsage {
  std::uint64_t held = 0;  // bytes, no more than the card has
  std::uint64_t pending = 0;
  std::uint64_t managed = 0;  // the part of `held` that NVML does not attribute to this process
  std::uint64_t launches = 0;
  std::uint64_t cost_ns = 0;     // no more than kMaxLaunchNs
  std::uint64_t drained_ns = 0;  // not in the future
  std::uint32_t drained = 0;     // a turn
  std::uint32_t waiting = 0;     // no more than kMaxThreads
  std::uint32_t contexts = 0;    // no more than kMaxContexts
  bool busy = false;
  // Counts of calls that allocate or free memory; read last, in this order.
  std::uint64_t ended = 0;
  std::uint64_t begun = 0;
};
inline constexpr std::uint64_t kMaxLaunchNs = 10'000'000'000;
inline constexpr std::uint32_t kMaxThreads = 65'536;
inline constexpr std::uint32_t kMaxContexts = 64;

std::uint64_t monotonic_ns();

class SharedPages {
 public:
  // Invalid for more GPUs than a page can hold. Unsupported if the kernel (before 5.1) cannot
  // prevent a tenant from writing.
  static Result<SharedPages> make(std::string_view share, std::span<const GpuPageValues> gpus);

  // For SCM_RIGHTS. Neither can be resized; the first can no longer be mapped writable.
  int limits_fd() const { return limits_fd_.get(); }
  int usage_fd() const { return usage_fd_.get(); }
  std::size_t limits_size() const { return sizeof(FenceLimits); }
  std::size_t usage_size() const { return fence_usage_size(gpu_count_); }
  std::uint32_t gpu_count() const { return gpu_count_; }

  void set_flags(std::uint32_t flags);
  void set_gpu(std::uint32_t gpu, const GpuPageValues& values);  // without the gate
  std::uint64_t memory_limit(std::uint32_t gpu) const;
  void heartbeat(std::uint64_t now_ns);
  // How old a heartbeat may be; zero: FENCE_STALE_NS.
  void set_stale_after(std::chrono::milliseconds age);
  // Wakes the threads that wait for the gate if its value changed.
  void set_gate(std::uint32_t gpu, std::uint32_t word);
  std::uint32_t gate(std::uint32_t gpu) const;
  void set_overhead(std::uint32_t gpu, std::uint64_t bytes);
  std::uint64_t overhead(std::uint32_t gpu) const;
  void set_reading_time(
      std::uint32_t gpu,
      std::uint64_t asked_ns);  // after everything that the reading returned was written
  std::uint64_t used(std::uint32_t slot, std::uint32_t gpu) const;
  void set_used(std::uint32_t slot, std::uint32_t gpu, std::uint64_t bytes);
  void set_seen_contexts(std::uint32_t slot, std::uint32_t gpu, std::uint32_t contexts);

  // Gives the slot to a process; its rows are empty.
  void take_slot(std::uint32_t slot, std::uint32_t host_pid, std::uint32_t pid);
  // The process has ended: frees the memory it used, and the ledger's lock.
  void free_slot(std::uint32_t slot);
  // Frees what it used on this GPU; the process keeps the slot.
  void clear_row(std::uint32_t slot, std::uint32_t gpu);
  bool is_taken(std::uint32_t slot) const { return taken_.at(slot); }
  std::uint32_t slots_in_use() const { return slots_in_use_; }

  ProcessUsage usage(std::uint32_t slot, std::uint32_t gpu) const;
  // Frees the ledger's lock if it names no living process. Any tenant may have written any value
  // there.
  void free_orphaned_lock();

 private:
  SharedPages() = default;
  FenceLimits& limits() const { return *static_cast<FenceLimits*>(limits_.get()); }
  FenceUsage& header() const { return *static_cast<FenceUsage*>(usage_.get()); }
  FenceUsageRow& row(std::uint32_t slot, std::uint32_t gpu) const;
  void show_slots_in_use();

  sys::UniqueFd limits_fd_;
  sys::UniqueFd usage_fd_;
  Mapping limits_;
  Mapping usage_;
  std::uint32_t gpu_count_ = 0;
  std::uint32_t slots_in_use_ = 0;
  std::array<bool, FENCE_MAX_PROCESSES> taken_{};
};

}  // namespace gantry::daemon
