// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"
#include "gpu/probe/gpu_health.hpp"

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

void with_mig(TestMachine& p) {
  p.gpu().mig.current = p.gpu().mig.pending = model::MigMode::Enabled;
  p.gpu().mig.instances.push_back({.uuid = {"MIG-1"}, .gpu_instance = 1, .compute_instance = 0});
}

}  // namespace

std::vector<Case> gpu_cases() {
  return {
      {"gpu.lost", Ok, unchanged},
      {"gpu.lost", Fail,
       [](TestMachine& p) {
         p.gpu().health = {model::HealthState::Lost, {"fell off the bus"}};
       }},
      {"gpu.reset", Ok, unchanged},
      {"gpu.reset", Fail,
       [](TestMachine& p) { p.gpu().health = probe::assess_health({.reset_required = true}); }},
      {"gpu.reset", Fail,
       [](TestMachine& p) {
         p.gpu().health =
             probe::assess_health({.recovery_action = probe::RecoveryAction::GpuReset});
       }},
      {"gpu.reset", Fail,
       [](TestMachine& p) {
         p.gpu().health =
             probe::assess_health({.recovery_action = probe::RecoveryAction::NodeReboot});
       }},
      {"gpu.reset", Warn,
       [](TestMachine& p) {
         p.gpu().health =
             probe::assess_health({.recovery_action = probe::RecoveryAction::DrainAndReset});
       }},
      {"gpu.reset", Ok,
       [](TestMachine& p) {
         p.gpu().health =
             probe::assess_health({.recovery_action = probe::RecoveryAction::DrainP2p});
       }},
      {"gpu.reset", Fail, [](TestMachine& p) { p.log(kAskedForReset); }},
      {"gpu.reset", Ok, [](TestMachine& p) { p.log(kAskedForReset).log(kTookItBack); }},
      {"gpu.health", Ok, unchanged},
      {"gpu.health", Warn,
       [](TestMachine& p) {
         p.gpu().health = {model::HealthState::Degraded, {"power brake"}};
       }},
      {"gpu.ecc", Ok, unchanged},
      {"gpu.ecc", Warn, [](TestMachine& p) { p.gpu().telemetry.ecc_uncorrected_volatile = 2; }},
      {"gpu.remap", Ok, unchanged},
      {"gpu.remap", Warn,
       [](TestMachine& p) {
         p.gpu().health = {model::HealthState::Degraded,
                           {"asking for clocks failed", "a bad memory row waits to be remapped"}};
       }},
      {"gpu.remap", Fail,
       [](TestMachine& p) {
         p.gpu().health = {model::HealthState::Degraded, {"remapping a bad memory row failed"}};
       }},
      {"gpu.temperature", Ok, unchanged},
      {"gpu.temperature", Warn, [](TestMachine& p) { p.gpu().telemetry.temperature_celsius = 93; }},
      {"gpu.excluded", Ok, unchanged},
      {"gpu.excluded", Warn,
       [](TestMachine& p) {
         p.tree.file("proc/driver/nvidia/gpus/0000:00:06.0/information", "GPU Excluded:\t Yes\n");
       }},
      {"gpu.excluded", Warn,
       [](TestMachine& p) {
         p.tree.file("proc/driver/nvidia/gpus/0000:00:06.0/information", "Blacklisted:\t Yes\n");
       }},
      {"gpu.views", Ok, unchanged},
      {"gpu.views", Warn,
       [](TestMachine& p) {
         p.inventory.differences.push_back({"GPU 0: minor", "0", "1"});
       }},
      {"gpu.compute-mode", Ok, unchanged},
      {"gpu.compute-mode", Fail, [](TestMachine& p) { p.gpu().compute_mode = "Prohibited"; }},
      {"gpu.compute-mode", Warn,
       [](TestMachine& p) { p.gpu().compute_mode = "Exclusive_Process"; }},
      {"gpu.compute-mode", Ok,
       [](TestMachine& p) {
         p.process("nvidia-cuda-mps-control").gpu().compute_mode = "Exclusive_Process";
       }},
      {"mig.pending", Ok, unchanged},
      {"mig.pending", Warn, [](TestMachine& p) { p.gpu().mig.pending = model::MigMode::Enabled; }},
      {"mig.empty", Ok, with_mig},
      {"mig.empty", Fail, [](TestMachine& p) { p.gpu().mig.current = model::MigMode::Enabled; }},
      {"lib.smi", Ok, unchanged},
      {"lib.smi", Info, [](TestMachine& p) { p.inventory.files.pop_back(); }},
      {"nvml.answers", Ok, unchanged},
      {"nvml.answers", Fail,
       [](TestMachine& p) { p.inventory.driver.nvml_error = "Driver/library version mismatch"; }},
  };
}

}  // namespace gantry::doctor
