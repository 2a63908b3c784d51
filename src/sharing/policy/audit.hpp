// SPDX-License-Identifier: Apache-2.0
// Whether a share keeps its limits, as the host sees it: the fence makes limits exact for programs
// that use the driver as it is meant, the audit makes them hold for the others. Readings and
// accounts in, findings out.
#pragma once

#include "gpu/model/inventory.hpp"
#include "sharing/policy/share.hpp"

#include <array>
#include <limits>
#include <optional>

namespace gantry::policy {

enum class ViolationKind : std::uint8_t {
  MemoryLimit,  // holds more than its limit
  PastFence,    // a process on the GPU that is not behind the fence
  HiddenTime,   // uses the GPU and does not say so
  OverCap,      // has more time than its cap
  Overstay      // does not leave the GPU when told: one very long kernel, or worse
};
inline constexpr std::size_t kViolationKinds = 5;
std::string_view to_string(ViolationKind offence);  // "memory", "past-fence", "hidden-time", ...

enum class Severity : std::uint8_t { Warning, Violation };
std::string_view to_string(Severity severity);

struct ProcessMemory {
  std::uint32_t pid = 0;           // the host's
  std::uint64_t memory_bytes = 0;  // as NVML has it
  std::uint64_t ledger_bytes = 0;  // as its fence has it
  bool attached = false;           // it has a slot
};

// One share on one GPU.
struct AuditInput {
  model::GpuUuid gpu;
  std::uint64_t memory_limit = std::numeric_limits<std::uint64_t>::max();
  std::vector<ProcessMemory> processes;
  std::optional<double> driver_percent;  // GPU time of its processes in the last second, by NVML
  double charged_percent = 0;            // in the same window, as it reported it (Meter)
  Time overstayed{0};                    // TenantView
};

// When something becomes a finding, and when it is over. Memory is to be seen within 1 s and time
// within 3 s, looking four times a second.
struct AuditThresholds {
  Time memory_grace = std::chrono::milliseconds(400);
  Time past_fence_grace = std::chrono::milliseconds(400);
  Time time_grace = std::chrono::milliseconds(1800);
  Time overstay_grace = std::chrono::seconds(3);
  Time longest_kernel = std::chrono::seconds(30);         // believed to be one
  Time resolved_after = std::chrono::seconds(2);          // without it for so long: over
  std::uint64_t memory_slack = std::uint64_t{128} << 20;  // what modules may load unasked
  std::uint64_t context_slack = std::uint64_t{1} << 30;   // a process, where contexts are free
  double time_tolerance_points = 12;                      // NVML's samples are rough
};

struct Finding {
  ViolationKind offence = ViolationKind::MemoryLimit;
  Severity severity = Severity::Warning;
  bool fresh = false;  // for the log: this look is the first to tell it
  Violation action = Violation::Report;
  std::vector<std::uint32_t> pids;  // whom to stop
  Time since{0};
  std::string text;  // what, how much, who
};

// Kept by the caller for each share and GPU from look to look.
struct AuditState {
  struct PendingFinding {
    std::optional<Time> first;  // since when it holds
    Time last{0};
    bool told = false;
  };
  std::array<PendingFinding, kViolationKinds> pending;
};

struct AuditResult {
  std::vector<Finding> findings;    // an action is repeated as long as it stands
  std::vector<ViolationKind> over;  // told before, gone now
};

AuditResult audit(const Share& share, const AuditInput& seen, AuditState& state, Time now,
                  const AuditThresholds& pace = {});

}  // namespace gantry::policy
