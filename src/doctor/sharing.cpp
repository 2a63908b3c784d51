// SPDX-License-Identifier: Apache-2.0
// Who may use a GPU at the same time: compute mode and MIG.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

std::string named(const model::Gpu& gpu) {
  return fmt::format("GPU {} ({})", gpu.index, gpu.pci.sysfs());
}

Finding judge_compute_mode(const Facts& f) {
  bool any = false;
  for (const auto& gpu : f.inventory().gpus) {
    const auto mode = to_lower(gpu.compute_mode);
    if (mode.empty()) continue;
    any = true;
    const std::vector<Evidence> read{{"NVML compute mode", gpu.compute_mode}};
    if (contains(mode, "prohibited")) return fail(named(gpu) + " lets no program in", read);
    if (contains(mode, "exclusive") && !f.running("nvidia-cuda-mps-control")) {
      return warn(named(gpu) + " lets one process in at a time", read);
    }
  }
  if (!any) return skip("no GPU tells its compute mode");
  return ok("several processes may use each GPU");
}

std::vector<Action> fix_compute_mode(const Facts&) {
  return {RunProgram{{"nvidia-smi", "-c", "0"}}};
}

Finding judge_mig_pending(const Facts& f) {
  bool any = false;
  for (const auto& gpu : f.inventory().gpus) {
    if (gpu.mig.current == model::MigMode::Unsupported ||
        gpu.mig.current == model::MigMode::Unknown || gpu.mig.pending == model::MigMode::Unknown) {
      continue;
    }
    any = true;
    if (gpu.mig.current == gpu.mig.pending) continue;
    const bool on = gpu.mig.pending == model::MigMode::Enabled;
    return warn(fmt::format("{}: MIG will be {} after a reset", named(gpu), on ? "on" : "off"),
                {{"NVML MIG mode",
                  on ? "current disabled, pending enabled" : "current enabled, pending disabled"}})
        .advise(fmt::format("sudo nvidia-smi --gpu-reset -i {}  # no program on it", gpu.index));
  }
  if (!any) return skip("no GPU has MIG");
  return ok("no MIG change is pending");
}

Finding judge_mig_empty(const Facts& f) {
  bool any = false;
  for (const auto& gpu : f.inventory().gpus) {
    if (gpu.mig.current == model::MigMode::Unsupported ||
        gpu.mig.current == model::MigMode::Unknown) {
      continue;
    }
    any = true;
    if (gpu.mig.current != model::MigMode::Enabled || !gpu.mig.instances.empty()) continue;
    return fail(named(gpu) + " has MIG on and no instance: nothing can run on it",
                {{"NVML", "MIG enabled, 0 instances"}})
        .advise(fmt::format("sudo nvidia-smi mig -i {0} -lgip; sudo nvidia-smi mig -i {0} -cgi "
                            "PROFILE -C  # or: sudo nvidia-smi -i {0} -mig 0",
                            gpu.index));
  }
  if (!any) return skip("no GPU has MIG");
  return ok("every GPU with MIG on has instances");
}

constexpr Check kChecks[] = {
    {.id = "gpu.compute-mode",
     .reference = "H33",
     .area = Area::Gpu,
     .fix_class = FixClass::OnRequest,
     .title = "several processes may use each GPU",
     .reads = "NVML",
     .cause = "Somebody set an exclusive compute mode and no MPS runs: the second process gets 46 "
              "\"all CUDA-capable devices are busy or unavailable\".",
     .remedy = "sudo nvidia-smi -c 0",
     .judge = judge_compute_mode,
     .fix = fix_compute_mode},
    {.id = "mig.pending",
     .reference = "H32",
     .area = Area::Gpu,
     .title = "no MIG change is pending",
     .reads = "NVML",
     .cause = "MIG mode was changed while the GPU was in use; it takes effect at the next reset.",
     .remedy = "sudo nvidia-smi --gpu-reset -i INDEX",
     .judge = judge_mig_pending},
    {.id = "mig.empty",
     .reference = "H32",
     .area = Area::Gpu,
     .title = "every GPU with MIG on has instances",
     .reads = "NVML",
     .cause =
         "MIG was switched on and no instance made; nvidia-smi lists the GPU, programs find no "
         "device. Instances are also lost when the driver is reloaded.",
     .remedy = "sudo nvidia-smi mig -i INDEX -cgi PROFILE -C",
     .judge = judge_mig_empty},
};

}  // namespace

std::span<const Check> sharing_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
