// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/mmio.hpp"

#include <algorithm>
#include <bit>

namespace gantry::hypervisor {
namespace {

constexpr std::uint64_t kEsxiLowWindow = 16 * kGiB;
constexpr std::uint64_t kMaxWindowBytes = 1ULL << 62U;  // a power of two that can still be doubled

// A card whose memory is unknown: BAR1 of a data-centre card is at least as large as its memory.
std::uint64_t memory_or_bar(const GuestGpu& gpu) {
  std::uint64_t largest = 0;
  for (const auto& bar : gpu.bars) largest = std::max(largest, bar.bytes);
  return gpu.memory_bytes.value_or(largest);
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return std::min(std::min(a, kMaxWindowBytes) + std::min(b, kMaxWindowBytes), kMaxWindowBytes);
}

}  // namespace

std::uint64_t round_up_to_power_of_two(std::uint64_t bytes) {
  if (bytes == 0) return 0;
  return bytes > kMaxWindowBytes ? kMaxWindowBytes : std::bit_ceil(bytes);
}

std::uint64_t bar_bytes(const GuestGpu& gpu) {
  std::uint64_t sum = 0;
  for (const auto& bar : gpu.bars) sum = saturating_add(sum, bar.bytes);
  return sum;
}

std::uint64_t mmio_window(std::span<const GuestGpu> gpus) {
  std::uint64_t sum = 0;
  for (const auto& gpu : gpus) {
    sum = saturating_add(sum, round_up_to_power_of_two(bar_bytes(gpu)));
  }
  return std::max(round_up_to_power_of_two(sum), kDefaultWindow);
}

std::uint64_t esxi_window_gb(std::span<const GuestGpu> gpus) {
  std::uint64_t memory_gb = 0;
  std::uint64_t bars = 0;
  for (const auto& gpu : gpus) {
    memory_gb += (std::min(memory_or_bar(gpu), kMaxWindowBytes) + kGiB - 1) / kGiB;
    bars = saturating_add(bars, round_up_to_power_of_two(bar_bytes(gpu)));
  }
  const auto by_memory = 2 * round_up_to_power_of_two(memory_gb);
  return std::max(by_memory, round_up_to_power_of_two(bars) / kGiB);
}

bool esxi_needs_64bit(std::span<const GuestGpu> gpus) {
  std::uint64_t sum = 0;
  for (const auto& gpu : gpus) sum = saturating_add(sum, bar_bytes(gpu));
  return sum > kEsxiLowWindow;
}

std::uint64_t locked_memory(std::uint64_t guest_bytes) {
  return saturating_add(guest_bytes, kGiB);
}

}  // namespace gantry::hypervisor
