// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/event_rules_internal.hpp"

#include <fmt/format.h>

namespace gantry::health {
namespace {

using model::GpuEventKind;
using model::RecoveryAction;

constexpr std::uint64_t kHardwareThermalSlowdown = 0x40;  // NVML's bit

}  // namespace

XidMeaning event_meaning(const model::GpuEvent& event) {
  switch (event.kind) {
    case GpuEventKind::Xid:
      return xid_meaning(event.data > 9999 ? 9999U : static_cast<unsigned>(event.data));
    case GpuEventKind::DoubleBitEcc:
      return {XidClass::Drain, XidScope::Card, "uncorrectable memory error",
              "drain and reset the GPU"};
    case GpuEventKind::DramRetirementFailure:
      return {XidClass::Replace, XidScope::Card, "a broken memory row could not be retired",
              "drain; replace the card"};
    case GpuEventKind::FatalPoison:
      return {XidClass::Reset, XidScope::Card, "poisoned data reached the GPU's own engines",
              "reset the GPU"};
    case GpuEventKind::GpuUnavailable:
      return {XidClass::Reset, XidScope::Card, "the GPU is not available", "reset the GPU"};
    case GpuEventKind::NonFatalPoison:
      return {XidClass::Contained, XidScope::Instance, "poisoned data reached a program",
              "restart the program it hit"};
    case GpuEventKind::DramRetirement:
      return {XidClass::Watch, XidScope::Card, "a memory row was retired", "reset when idle"};
    case GpuEventKind::SingleBitEccStorm:
      return {XidClass::Watch, XidScope::Card, "very many corrected memory errors", "watch it"};
    case GpuEventKind::SingleBitEcc:
      return {XidClass::Watch, XidScope::Card, "a corrected memory error", ""};
    case GpuEventKind::MigChanged:
      return {XidClass::Watch, XidScope::Card, "its MIG layout changed", ""};
    case GpuEventKind::RecoveryActionChanged:
      return {XidClass::Watch, XidScope::Card, "the driver wants another recovery action", ""};
  }
  return {};
}

std::string describe(const model::GpuEvent& event, const XidMeaning& meaning) {
  const auto where = event.gpu_instance && meaning.scope == XidScope::Instance
                         ? fmt::format(" in GPU instance {}", *event.gpu_instance)
                         : std::string();
  if (event.kind == GpuEventKind::Xid)
    return fmt::format("Xid {}{}: {}", event.data, where, meaning.meaning);
  return fmt::format("{}{}", meaning.meaning, where);
}

std::string remedy_for(XidClass needs, const model::GpuUuid& gpu) {
  const auto which = gpu.text.empty() ? std::string() : fmt::format(" -i {}", gpu.text);
  switch (needs) {
    case XidClass::Reboot: return "systemctl reboot";
    case XidClass::Replace: return fmt::format("nvidia-smi -q -d ROW_REMAPPER,ECC{}", which);
    case XidClass::Reset:
    case XidClass::Drain: return fmt::format("nvidia-smi --gpu-reset{}", which);
    default: return "gantry doctor";
  }
}

std::optional<RequestedAction> requested_action(const model::GpuReading& reading) {
  switch (reading.recovery_action.value_or(RecoveryAction::None)) {
    case RecoveryAction::None: break;
    case RecoveryAction::GpuReset:
      return RequestedAction{XidClass::Reset, "the driver wants this GPU to be reset"};
    case RecoveryAction::NodeReboot:
      return RequestedAction{XidClass::Reboot, "the driver wants this machine to be rebooted"};
    case RecoveryAction::DrainP2p:
      return RequestedAction{XidClass::Drain,
                             "the driver wants programs that use its links to other GPUs to end"};
    case RecoveryAction::DrainAndReset:
      return RequestedAction{XidClass::Drain,
                             "the driver wants this GPU to be drained of programs, then reset"};
    case RecoveryAction::RecoverImexDomain:
      return RequestedAction{XidClass::Watch, "the driver wants the IMEX domain to be recovered"};
  }
  if (reading.reset_required)
    return RequestedAction{XidClass::Reset, "the driver says that this GPU must be reset"};
  return std::nullopt;
}

bool is_hot(const model::GpuReading& reading) {
  return (reading.clock_reasons.value_or(0) & kHardwareThermalSlowdown) != 0;
}

bool counter_was_reset(const std::optional<std::uint64_t>& before,
                       const std::optional<std::uint64_t>& now) {
  return before && now && *now < *before;
}

}  // namespace gantry::health
