// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/nvml/pages_internal.hpp"
#include "sharing/fence/nvml/real_internal.hpp"
#include "sharing/fence/nvml/share_internal.hpp"

#include <string.h>

namespace gantry::fence::nvml {
namespace {

uint32_t load(const uint32_t& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

uint64_t load(const uint64_t& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

// The tenant writes the rows; an invalid number must not wrap around into a valid one.
uint64_t saturating_add(uint64_t one, uint64_t other) {
  uint64_t sum = 0;
  return __builtin_add_overflow(one, other, &sum) ? UINT64_MAX : sum;
}

int hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// Parses "GPU-952a3506-fcee-90d7-e644-807de6893aee". UUIDs of MIG devices begin differently.
bool parse_uuid(const char* text, uint8_t (&out)[16]) {
  if (strncmp(text, "GPU-", 4) != 0) return false;
  text += 4;
  for (auto& byte : out) {
    if (*text == '-') ++text;
    const int high = hex(text[0]);
    const int low = high < 0 ? -1 : hex(text[1]);
    if (low < 0) return false;
    byte = static_cast<uint8_t>(high * 16 + low);
    text += 2;
  }
  return *text == '\0';
}

// Queried at every call: NVML has it in memory, and a stored handle could mean another GPU after
// nvmlShutdown and nvmlInit.
bool uuid_of(nvmlDevice_t device, uint8_t (&out)[16]) {
  char text[96] = {};
  const auto real = FENCE_REAL(nvmlDeviceGetUUID);
  return real != nullptr && real(device, text, sizeof text) == NVML_SUCCESS &&
         parse_uuid(text, out);
}

}  // namespace

Share::Share(nvmlDevice_t device) {
  const Pages pages = share_pages();
  if (pages.limits == nullptr && !pages.fenced) return;
  uint8_t uuid[16];
  if (!uuid_of(device, uuid)) return;
  if (pages.limits == nullptr) {
    standing_ = Membership::Unknown;
    return;
  }
  for (uint32_t i = 0; i < pages.gpu_count; ++i) {
    if (memcmp(pages.limits->gpu[i].uuid, uuid, sizeof uuid) != 0) continue;
    limits_ = pages.limits;
    usage_ = pages.usage;
    gpu_ = i;
    standing_ = Membership::Member;
    return;
  }
}

bool Share::limits_memory() const {
  return load(gpu().memory_limit) != UINT64_MAX;
}

uint64_t Share::limit() const {
  return load(gpu().memory_limit);
}

const FenceUsageRow& Share::row(uint32_t slot) const {
  const auto* rows = reinterpret_cast<const FenceUsageRow*>(usage_ + 1);
  return rows[static_cast<size_t>(gpu_) * FENCE_MAX_PROCESSES + slot];
}

uint32_t Share::slots() const {
  constexpr uint32_t kMaxSlots = FENCE_MAX_PROCESSES;
  const uint32_t in_use = load(limits_->slots_in_use);
  return in_use < kMaxSlots ? in_use : kMaxSlots;
}

// The estimated memory of the contexts that the overhead does not include yet.
uint64_t Share::uncounted_contexts(uint32_t slot) const {
  const uint32_t made = load(row(slot).contexts);
  const uint32_t seen = load(limits_->process[slot].seen_contexts[gpu_]);
  uint64_t bytes = 0;
  if (made <= seen) return 0;
  return __builtin_mul_overflow(uint64_t{made - seen}, load(gpu().context_estimate), &bytes)
             ? UINT64_MAX
             : bytes;
}

uint64_t Share::used() const {
  const bool contexts = (load(limits_->flags) & FENCE_CONTEXT_FREE) == 0;
  uint64_t sum = contexts ? load(gpu().memory_overhead) : 0;
  for (uint32_t slot = 0; slot < slots(); ++slot) {
    sum = saturating_add(sum, load(row(slot).held));
    if (contexts) sum = saturating_add(sum, uncounted_contexts(slot));
  }
  return sum < limit() ? sum : limit();
}

// NVML's value at the daemon's last reading, or more if the process has allocated more since.
// Managed memory, which NVML attributes to no process, is added, so that the processes add up to
// the share.
bool Share::member(uint32_t slot, Member& out) const {
  const FenceProcess& process = limits_->process[slot];
  out.host_pid = load(process.host_pid);
  if (out.host_pid == 0) return false;
  const uint32_t inside = load(process.pid);
  out.pid = inside != 0 ? inside : out.host_pid;
  const uint64_t held = load(row(slot).held);
  const uint64_t managed = load(row(slot).managed) < held ? load(row(slot).managed) : held;
  const uint64_t seen = load(process.used[gpu_]);
  const uint64_t own = saturating_add(held - managed, uncounted_contexts(slot));
  out.bytes = saturating_add(seen > own ? seen : own, managed);
  if (out.bytes > limit()) out.bytes = limit();
  return out.bytes > 0 || load(row(slot).contexts) > 0;
}

bool Share::own(unsigned int pid_from_driver, unsigned int& shown) const {
  for (uint32_t slot = 0; slot < slots(); ++slot) {
    const uint32_t host = load(limits_->process[slot].host_pid);
    const uint32_t inside = load(limits_->process[slot].pid);
    if (host == 0 || (pid_from_driver != host && pid_from_driver != inside)) continue;
    shown = inside != 0 ? inside : host;
    return true;
  }
  return false;
}

uint32_t Share::host_pid(unsigned int pid) const {
  for (uint32_t slot = 0; slot < slots(); ++slot) {
    const uint32_t host = load(limits_->process[slot].host_pid);
    const uint32_t inside = load(limits_->process[slot].pid);
    if (host != 0 && pid == (inside != 0 ? inside : host)) return host;
  }
  return 0;
}

}  // namespace gantry::fence::nvml
