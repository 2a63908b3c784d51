// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/audit.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::policy {
namespace {

constexpr std::array<std::string_view, kViolationKinds> kNames{
    "memory", "past-fence", "hidden-time", "over-cap", "overstay"};

// The result of one reading, regardless of how long the condition has existed.
struct Observation {
  ViolationKind offence;
  Severity severity = Severity::Violation;
  Time grace{0};
  std::vector<std::uint32_t> pids;
  std::string text;
};

std::vector<std::uint32_t> unattached(const AuditInput& seen) {
  std::vector<std::uint32_t> pids;
  for (const auto& process : seen.processes) {
    if (!process.attached && process.memory_bytes > 0) pids.push_back(process.pid);
  }
  return pids;
}

std::vector<std::uint32_t> all_pids(const AuditInput& seen) {
  std::vector<std::uint32_t> pids;
  for (const auto& process : seen.processes) pids.push_back(process.pid);
  return pids;
}

// The process that uses uncounted memory: one that bypasses the fence, or the one with the most
// memory beyond its ledger.
std::vector<std::uint32_t> pids_over_limit(const AuditInput& seen) {
  auto pids = unattached(seen);
  if (!pids.empty() || seen.processes.empty()) return pids;
  const auto beside = [](const ProcessMemory& process) {
    return process.memory_bytes - std::min(process.memory_bytes, process.ledger_bytes);
  };
  const auto worst = std::max_element(
      seen.processes.begin(), seen.processes.end(),
      [&](const auto& one, const auto& other) { return beside(one) < beside(other); });
  return {worst->pid};
}

std::string names(const std::vector<std::uint32_t>& pids) {
  return fmt::format("process{} {}", pids.size() == 1 ? "" : "es", fmt::join(pids, ", "));
}

std::optional<Observation> memory(const Share& share, const AuditInput& seen,
                                  const AuditThresholds& pace) {
  std::uint64_t held = 0;
  std::uint64_t allowed = pace.memory_slack;
  for (const auto& process : seen.processes) {
    held += process.memory_bytes;
    if (share.context_memory == ContextMemory::Free) allowed += pace.context_slack;
  }
  if (held <= allowed || held - allowed <= seen.memory_limit) return std::nullopt;
  auto pids = pids_over_limit(seen);
  auto text =
      fmt::format("share {} uses {} on {}, its limit is {}; by {}", share.name, human_bytes(held),
                  seen.gpu.text, human_bytes(seen.memory_limit), names(pids));
  return Observation{.offence = ViolationKind::MemoryLimit,
                     .grace = pace.memory_grace,
                     .pids = std::move(pids),
                     .text = std::move(text)};
}

std::optional<Observation> past_fence(const Share& share, const AuditInput& seen,
                                      const AuditThresholds& pace) {
  auto pids = unattached(seen);
  if (pids.empty()) return std::nullopt;
  const bool expected = share.unattached == UnattachedPolicy::Pass;
  auto text = fmt::format("share {}: {} on {} not behind the fence, {}", share.name, names(pids),
                          seen.gpu.text,
                          expected ? "which its policy allows: only the audit limits it"
                                   : "possibly with its own libcuda");
  return Observation{.offence = ViolationKind::PastFence,
                     .severity = expected ? Severity::Warning : Severity::Violation,
                     .grace = pace.past_fence_grace,
                     .pids = std::move(pids),
                     .text = std::move(text)};
}

std::optional<Observation> hidden_time(const Share& share, const AuditInput& seen,
                                       const AuditThresholds& pace) {
  if (!share.time_limited || !seen.driver_percent) return std::nullopt;
  if (*seen.driver_percent <= seen.charged_percent + pace.time_tolerance_points)
    return std::nullopt;
  auto pids = unattached(seen);
  if (pids.empty()) pids = all_pids(seen);
  auto text = fmt::format("share {} uses {:.0f} % of the time of {} but reports {:.0f} %; by {}",
                          share.name, *seen.driver_percent, seen.gpu.text, seen.charged_percent,
                          names(pids));
  return Observation{.offence = ViolationKind::HiddenTime,
                     .grace = pace.time_grace,
                     .pids = std::move(pids),
                     .text = std::move(text)};
}

// One long kernel exceeds every cap while it runs, and is paid for afterwards.
std::optional<Observation> over_cap(const Share& share, const AuditInput& seen,
                                    const AuditThresholds& pace) {
  if (share.time_policy.excess != Excess::Refused || !seen.driver_percent) return std::nullopt;
  if (*seen.driver_percent <= share.time_policy.percent + pace.time_tolerance_points)
    return std::nullopt;
  auto text = fmt::format("share {} uses {:.0f} % of the time of {}, its limit is {} %", share.name,
                          *seen.driver_percent, seen.gpu.text, share.time_policy.percent);
  const bool one_kernel = seen.overstayed > Time::zero() && seen.overstayed < pace.longest_kernel;
  return Observation{.offence = ViolationKind::OverCap,
                     .severity = one_kernel ? Severity::Warning : Severity::Violation,
                     .grace = pace.time_grace,
                     .pids = all_pids(seen),
                     .text = std::move(text)};
}

// A kernel may take any time: this is reported, but the process is never stopped for it.
std::optional<Observation> overstay(const Share& share, const AuditInput& seen,
                                    const AuditThresholds& pace) {
  if (seen.overstayed < pace.overstay_grace) return std::nullopt;
  auto text = fmt::format(
      "share {} has not stopped using {} {} s after its turn ended: one of its kernels is very "
      "long "
      "or hangs",
      share.name, seen.gpu.text,
      std::chrono::duration_cast<std::chrono::seconds>(seen.overstayed).count());
  return Observation{.offence = ViolationKind::Overstay,
                     .severity = Severity::Warning,
                     .pids = all_pids(seen),
                     .text = std::move(text)};
}

}  // namespace

std::string_view to_string(ViolationKind offence) {
  return kNames[static_cast<std::size_t>(offence)];
}

std::string_view to_string(Severity severity) {
  return severity == Severity::Warning ? "warning" : "violation";
}

AuditResult audit(const Share& share, const AuditInput& seen, AuditState& state, Time now,
                  const AuditThresholds& pace) {
  AuditResult look;
  for (auto find : {memory, past_fence, hidden_time, over_cap, overstay}) {
    auto evidence = find(share, seen, pace);
    if (!evidence) continue;
    auto& suspicion = state.pending[static_cast<std::size_t>(evidence->offence)];
    if (!suspicion.first) suspicion.first = now;
    suspicion.last = now;
    if (now - *suspicion.first < evidence->grace) continue;
    const bool stop =
        evidence->severity == Severity::Violation && share.violation == ViolationPolicy::Stop;
    look.findings.push_back({.offence = evidence->offence,
                             .severity = evidence->severity,
                             .fresh = !suspicion.told,
                             .action = stop ? ViolationPolicy::Stop : ViolationPolicy::Report,
                             .pids = std::move(evidence->pids),
                             .since = *suspicion.first,
                             .text = std::move(evidence->text)});
    suspicion.told = true;
  }
  for (std::size_t i = 0; i < kViolationKinds; ++i) {
    auto& suspicion = state.pending[i];
    // One good reading clears a suspicion. A reported finding ends only after some time without it,
    // or a share near its limit would be reported again and again.
    const auto needed = suspicion.told ? pace.resolved_after : Time{1};
    if (!suspicion.first || now - suspicion.last < needed) continue;
    if (suspicion.told) look.over.push_back(static_cast<ViolationKind>(i));
    suspicion = {};
  }
  return look;
}

}  // namespace gantry::policy
