// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/gpu_health.hpp"

#include <fmt/format.h>

namespace gantry::probe {
namespace {

std::string_view describe(RecoveryAction action) {
  switch (action) {
    case RecoveryAction::None: break;
    case RecoveryAction::GpuReset:
      return "the driver asks for a reset of this GPU: `nvidia-smi --gpu-reset`";
    case RecoveryAction::NodeReboot: return "the driver asks for a reboot of the machine";
    case RecoveryAction::DrainP2p:
      return "the driver asks to stop all work that uses peer access to this GPU";
    case RecoveryAction::DrainAndReset:
      return "the driver asks to stop the work on this GPU, then `nvidia-smi --gpu-reset`";
    case RecoveryAction::RecoverImexDomain: return "the driver asks to recover the IMEX domain";
  }
  return "";
}

}  // namespace

model::Health assess_health(const HealthFacts& facts) {
  if (!facts.lost.empty()) return {model::HealthState::Lost, {facts.lost}};
  std::vector<std::string> reasons;
  const auto add = [&](bool holds, std::string_view reason) {
    if (holds) reasons.emplace_back(reason);
  };
  add(facts.reset_required,
      "the GPU must be reset before it is used again: `nvidia-smi --gpu-reset`");
  if (const auto errors = facts.ecc_uncorrected_volatile.value_or(0); errors > 0) {
    reasons.push_back(fmt::format("{} uncorrectable memory error{} since the driver was loaded",
                                  errors, errors == 1 ? "" : "s"));
  }
  add(facts.row_remap_failure.value_or(false),
      "remapping a bad memory row failed: the card needs repair");
  add(facts.row_remap_pending.value_or(false),
      "a bad memory row waits to be remapped by the next GPU reset");
  add(facts.page_retirement_pending.value_or(false),
      "a bad memory page waits to be retired by the next GPU reset");
  const bool said =
      facts.reset_required && facts.recovery_action == RecoveryAction::GpuReset;  // once is enough
  if (facts.recovery_action && !said) {
    const auto wanted = describe(*facts.recovery_action);
    add(!wanted.empty(), wanted);
  }
  add(facts.thermal_slowdown, "clocks are reduced because the GPU is too hot");
  add(facts.power_brake, "clocks are reduced because the board signals a power brake");
  add(!facts.fabric.empty(), facts.fabric);
  reasons.insert(reasons.end(), facts.failures.begin(), facts.failures.end());
  const auto state = reasons.empty() ? model::HealthState::Ok : model::HealthState::Degraded;
  return {state, std::move(reasons)};
}

}  // namespace gantry::probe
