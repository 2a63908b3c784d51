// SPDX-License-Identifier: Apache-2.0
// Checks from the host whether a share keeps its limits. The fence makes limits exact for programs
// that use the driver normally; the audit enforces them for all others. Readings and accounts come
// in, findings go out.
#pragma once

#include "gpu/model/inventory.hpp"
#include "sharing/policy/share.hpp"

#include <array>
#include <limits>
#include <optional>

namespace gantry::policy {

enum class ViolationKind : std::uint8_t {
  MemoryLimit,  // uses more memory than its limit
  PastFence,    // a process uses the GPU without the fence
  HiddenTime,   // uses GPU time that it does not report
  OverCap,      // uses more time than its cap
  Overstay      // does not leave the GPU when told: a very long kernel, or on purpose
};
inline constexpr std::size_t kViolationKinds = 5;
std::string_view to_string(ViolationKind offence);  // "memory", "past-fence", "hidden-time", ...

enum class Severity : std::uint8_t { Warning, Violation };
std::string_view to_string(Severity severity);

struct ProcessMemory {
  std::uint32_t pid = 0;           // on the host
  std::uint64_t memory_bytes = 0;  // as NVML reports it
  std::uint64_t ledger_bytes = 0;  // as its fence reports it
  bool attached = false;           // the process has a slot
};

// One share on one GPU.
struct AuditInput {
  model::GpuUuid gpu;
  std::uint64_t memory_limit = std::numeric_limits<std::uint64_t>::max();
  std::vector<ProcessMemory> processes;
  std::optional<double> driver_percent;  // GPU time of its processes in the last second, by NVML
  double charged_percent = 0;            // reported in the same window (Meter)
  Time overstayed{0};                    // TenantView
};

// When something becomes a finding, and when the finding ends. With four readings a second, too
// much memory is found within 1 s and too much time within 3 s.
struct AuditThresholds {
  Time memory_grace = std::chrono::milliseconds(400);
  Time past_fence_grace = std::chrono::milliseconds(400);
  Time time_grace = std::chrono::milliseconds(1800);
  Time overstay_grace = std::chrono::seconds(3);
  Time longest_kernel = std::chrono::seconds(30);         // up to this it is taken for a kernel
  Time resolved_after = std::chrono::seconds(2);          // absent for this long: the finding ends
  std::uint64_t memory_slack = std::uint64_t{128} << 20;  // what modules may load without a request
  std::uint64_t context_slack = std::uint64_t{1} << 30;   // per process, if contexts are free
  double time_tolerance_points = 12;                      // NVML's samples are imprecise
};

struct Finding {
  ViolationKind offence = ViolationKind::MemoryLimit;
  Severity severity = Severity::Warning;
  bool fresh = false;  // for the log: this reading is the first to report it
  ViolationPolicy action = ViolationPolicy::Report;
  std::vector<std::uint32_t> pids;  // the processes to stop
  Time since{0};
  std::string text;  // what, how much, which processes
};

// The caller keeps one for each share and GPU between readings.
struct AuditState {
  struct PendingFinding {
    std::optional<Time> first;  // since when the condition is true
    Time last{0};
    bool told = false;
  };
  std::array<PendingFinding, kViolationKinds> pending;
};

struct AuditResult {
  std::vector<Finding> findings;    // the action is repeated while the finding exists
  std::vector<ViolationKind> over;  // reported before, gone now
};

AuditResult audit(const Share& share, const AuditInput& seen, AuditState& state, Time now,
                  const AuditThresholds& pace = {});

}  // namespace gantry::policy
