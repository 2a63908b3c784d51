// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/patient_for_test.hpp"
#include "gpu/probe/health.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

constexpr std::string_view kAskedForReset =
    "NVRM: Xid (PCI:0000:00:06): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU "
    "Reset "
    "Required)";
constexpr std::string_view kTookItBack =
    "NVRM: Xid (PCI:0000:00:06): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to "
    "0x0 (None)";

void with_mig(Patient& p) {
  p.gpu().mig.current = p.gpu().mig.pending = model::MigMode::Enabled;
  p.gpu().mig.instances.push_back({.uuid = {"MIG-1"}, .gpu_instance = 1, .compute_instance = 0});
}

}  // namespace

std::vector<Case> gpu_cases() {
  return {
      {"gpu.lost", Ok, as_it_is},
      {"gpu.lost", Fail,
       [](Patient& p) {
         p.gpu().health = {model::HealthState::Lost, {"fell off the bus"}};
       }},
      {"gpu.reset", Ok, as_it_is},
      {"gpu.reset", Fail,
       [](Patient& p) { p.gpu().health = probe::judge({.reset_required = true}); }},
      {"gpu.reset", Fail,
       [](Patient& p) {
         p.gpu().health = probe::judge({.recovery_action = probe::RecoveryAction::GpuReset});
       }},
      {"gpu.reset", Fail,
       [](Patient& p) {
         p.gpu().health = probe::judge({.recovery_action = probe::RecoveryAction::NodeReboot});
       }},
      {"gpu.reset", Warn,
       [](Patient& p) {
         p.gpu().health = probe::judge({.recovery_action = probe::RecoveryAction::DrainAndReset});
       }},
      {"gpu.reset", Ok,
       [](Patient& p) {
         p.gpu().health = probe::judge({.recovery_action = probe::RecoveryAction::DrainP2p});
       }},
      {"gpu.reset", Fail, [](Patient& p) { p.log(kAskedForReset); }},
      {"gpu.reset", Ok, [](Patient& p) { p.log(kAskedForReset).log(kTookItBack); }},
      {"gpu.health", Ok, as_it_is},
      {"gpu.health", Warn,
       [](Patient& p) {
         p.gpu().health = {model::HealthState::Degraded, {"power brake"}};
       }},
      {"gpu.ecc", Ok, as_it_is},
      {"gpu.ecc", Warn, [](Patient& p) { p.gpu().telemetry.ecc_uncorrected_volatile = 2; }},
      {"gpu.remap", Ok, as_it_is},
      {"gpu.remap", Warn,
       [](Patient& p) {
         p.gpu().health = {model::HealthState::Degraded,
                           {"asking for clocks failed", "a bad memory row waits to be remapped"}};
       }},
      {"gpu.remap", Fail,
       [](Patient& p) {
         p.gpu().health = {model::HealthState::Degraded, {"remapping a bad memory row failed"}};
       }},
      {"gpu.temperature", Ok, as_it_is},
      {"gpu.temperature", Warn, [](Patient& p) { p.gpu().telemetry.temperature_celsius = 93; }},
      {"gpu.excluded", Ok, as_it_is},
      {"gpu.excluded", Warn,
       [](Patient& p) {
         p.tree.file("proc/driver/nvidia/gpus/0000:00:06.0/information", "GPU Excluded:\t Yes\n");
       }},
      {"gpu.views", Ok, as_it_is},
      {"gpu.views", Warn,
       [](Patient& p) {
         p.inventory.differences.push_back({"GPU 0: minor", "0", "1"});
       }},
      {"gpu.compute-mode", Ok, as_it_is},
      {"gpu.compute-mode", Fail, [](Patient& p) { p.gpu().compute_mode = "Prohibited"; }},
      {"gpu.compute-mode", Warn, [](Patient& p) { p.gpu().compute_mode = "Exclusive_Process"; }},
      {"gpu.compute-mode", Ok,
       [](Patient& p) {
         p.process("nvidia-cuda-mps-control").gpu().compute_mode = "Exclusive_Process";
       }},
      {"mig.pending", Ok, as_it_is},
      {"mig.pending", Warn, [](Patient& p) { p.gpu().mig.pending = model::MigMode::Enabled; }},
      {"mig.empty", Ok, with_mig},
      {"mig.empty", Fail, [](Patient& p) { p.gpu().mig.current = model::MigMode::Enabled; }},
      {"lib.smi", Ok, as_it_is},
      {"lib.smi", Info, [](Patient& p) { p.inventory.files.pop_back(); }},
      {"nvml.answers", Ok, as_it_is},
      {"nvml.answers", Fail,
       [](Patient& p) { p.inventory.driver.nvml_error = "Driver/library version mismatch"; }},
  };
}

}  // namespace gantry::doctor
