// SPDX-License-Identifier: Apache-2.0
// GPUs that the driver does not use again before a reset.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/kernel_log.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

enum class RecoveryStep : std::uint8_t { None, DrainAndReset, Reset, Reboot };

// Matches the probe's sentences for NVML's "reset required" and recovery action.
RecoveryStep recovery_from_reason(const std::string& reason) {
  if (contains(reason, "asks for a reboot")) return RecoveryStep::Reboot;
  if (contains(reason, "must be reset") || contains(reason, "asks for a reset")) {
    return RecoveryStep::Reset;
  }
  if (contains(reason, "stop the work on this GPU")) return RecoveryStep::DrainAndReset;
  return RecoveryStep::None;
}

// Xid 154 reports each change: "... changed from 0x0 (None) to 0x1 (GPU Reset Required)".
RecoveryStep recovery_from_xid(std::string_view text) {
  const auto now = text.substr(std::min(text.size(), text.rfind(" to ")));
  if (contains(now, "Reboot")) return RecoveryStep::Reboot;
  if (contains(now, "Drain")) return RecoveryStep::DrainAndReset;
  return contains(now, "Reset") ? RecoveryStep::Reset : RecoveryStep::None;
}

struct RequiredRecovery {
  RecoveryStep recovery = RecoveryStep::None;
  Evidence evidence;
};

// NVML's answer counts; without one, the last Xid 154 of the log.
RequiredRecovery required_recovery(const Facts& f, const model::Gpu& gpu) {
  RequiredRecovery required;
  for (const auto& reason : gpu.health.reasons) {
    const auto recovery = recovery_from_reason(reason);
    if (recovery > required.recovery) {
      required = {recovery, {fmt::format("NVML, GPU {}", gpu.index), reason}};
    }
  }
  if (required.recovery != RecoveryStep::None || !f.kernel_log()) return required;
  for (const auto& xid : find_xids(*f.kernel_log())) {
    if (xid.number != 154 || !gpu.pci.sysfs().starts_with(to_lower(xid.pci))) continue;
    required = {recovery_from_xid(xid.text), {"kernel log", fmt::format("Xid 154, {}", xid.text)}};
  }
  return required;
}

Finding judge_required_reset(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  if (gpus.empty()) return skip("the driver shows no GPU");
  Tally tally;
  auto worst = RecoveryStep::None;
  for (const auto& gpu : gpus) {
    auto required = required_recovery(f, gpu);
    if (required.recovery == RecoveryStep::None) continue;
    worst = std::max(worst, required.recovery);
    tally.found(gpu_label(gpu), std::move(required.evidence), fmt::to_string(gpu.index));
  }
  if (!tally.any_bad()) {
    return ok("no GPU waits for a reset",
              {{"NVML", fmt::format("no recovery required, {} GPU{}", gpus.size(),
                                    gpus.size() == 1 ? "" : "s")}});
  }
  const auto reset = tally.command("sudo nvidia-smi --gpu-reset -i @");
  switch (worst) {
    case RecoveryStep::Reboot:
      return fail(fmt::format("only a reboot helps: {}", tally.who()), tally.bad)
          .advise("sudo reboot");
    case RecoveryStep::Reset:
      return fail(fmt::format("must be reset before it is used again: {}", tally.who()), tally.bad)
          .advise(reset + "  # end its programs first");
    default:
      return warn(fmt::format("should be reset when its programs have ended: {}", tally.who()),
                  tally.bad)
          .advise(reset);
  }
}

// A reset kills every program on the GPU, so there must be none.
Steps fix_reset(const Facts& f) {
  Steps steps;
  for (const auto& gpu : f.inventory().gpus) {
    const auto recovery = required_recovery(f, gpu).recovery;
    if (recovery == RecoveryStep::None || recovery == RecoveryStep::Reboot ||
        !gpu.processes.empty()) {
      continue;
    }
    steps.emplace_back(RunProgram{{"nvidia-smi", "--gpu-reset", "-i", fmt::to_string(gpu.index)}});
  }
  return steps;
}

constexpr Check kRecoveryChecks[] = {
    {.id = "gpu.reset",
     .reference = "H29",
     .area = Area::Gpu,
     .fix_class = FixClass::OnRequest,
     .title = "no GPU waits for a reset",
     .reads = "NVML (reset required, recovery action), /dev/kmsg (Xid 154)",
     .cause = "After an error that only a reset clears (Xid 48, 62, 64, 95, 119, 140) the driver "
              "does not start new programs on the GPU: NVML says \"GPU requires reset\".",
     .remedy = "sudo nvidia-smi --gpu-reset -i INDEX",
     .judge = judge_required_reset,
     .fix = fix_reset,
     .by_hand = "programs use the GPU and a reset would kill them, or only a reboot helps"},
};

}  // namespace

std::span<const Check> recovery_checks() {
  return kRecoveryChecks;
}

}  // namespace gantry::doctor
