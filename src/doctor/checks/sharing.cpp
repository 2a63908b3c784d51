// SPDX-License-Identifier: Apache-2.0
// Use of a GPU by several programs at the same time: compute mode and MIG.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

using health::ComputeObstacleKind;

bool shut(const Facts& f, const model::Gpu& gpu) {
  const auto mode = to_lower(gpu.compute_mode);
  return mode == "prohibited" ||
         (contains(mode, "exclusive") && !f.running("nvidia-cuda-mps-control"));
}

Finding judge_compute_mode(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.inventory().gpus) {
    if (gpu.compute_mode.empty()) continue;
    Evidence read{fmt::format("NVML, GPU {}", gpu.index), "compute mode " + gpu.compute_mode};
    if (!shut(f, gpu)) {
      tally.good(std::move(read));
      continue;
    }
    tally.found(gpu_label(gpu), std::move(read), fmt::to_string(gpu.index));
  }
  if (tally.empty()) return skip("no GPU reports its compute mode");
  if (!tally.any_bad()) return ok("several processes may use each GPU", tally.well);
  const auto remedy = tally.command("sudo nvidia-smi -i @ -c 0");
  if (f.obstacle(ComputeObstacleKind::Prohibited) != nullptr) {
    return fail(fmt::format("the compute mode keeps programs away from {}", tally.who()), tally.bad)
        .advise(remedy);
  }
  return warn(fmt::format("only one process at a time may use it: {}", tally.who()), tally.bad)
      .advise(remedy);
}

Steps fix_compute_mode(const Facts& f) {
  Steps steps;
  for (const auto& gpu : f.inventory().gpus) {
    if (!shut(f, gpu)) continue;
    steps.emplace_back(RunProgram{{"nvidia-smi", "-i", fmt::to_string(gpu.index), "-c", "0"}});
  }
  return steps;
}

bool knows_mig(const model::Gpu& gpu) {
  return gpu.mig.current != model::MigMode::Unsupported &&
         gpu.mig.current != model::MigMode::Unknown;
}

bool mig_pending(const model::Gpu& gpu) {
  return knows_mig(gpu) && gpu.mig.pending != model::MigMode::Unknown &&
         gpu.mig.current != gpu.mig.pending;
}

Finding judge_mig_pending(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  if (!std::any_of(gpus.begin(), gpus.end(), knows_mig)) return skip("no GPU has MIG");
  Tally tally;
  for (const auto& gpu : gpus) {
    if (!mig_pending(gpu)) continue;
    const bool on = gpu.mig.pending == model::MigMode::Enabled;
    tally.found(fmt::format("{} ({})", gpu_label(gpu), on ? "on" : "off"),
                {fmt::format("NVML, GPU {}", gpu.index),
                 on ? "MIG disabled, pending enabled" : "MIG enabled, pending disabled"},
                fmt::to_string(gpu.index));
  }
  if (!tally.any_bad()) return ok("no MIG change is pending");
  return warn(fmt::format("MIG changes at the next reset: {}", tally.who()), tally.bad)
      .advise(tally.command("sudo nvidia-smi --gpu-reset -i @") + "  # end its programs first");
}

Steps fix_mig_pending(const Facts& f) {
  Steps steps;
  for (const auto& gpu : f.inventory().gpus) {
    if (!mig_pending(gpu) || !gpu.processes.empty()) continue;
    steps.emplace_back(RunProgram{{"nvidia-smi", "--gpu-reset", "-i", fmt::to_string(gpu.index)}});
  }
  return steps;
}

bool mig_empty(const model::Gpu& gpu) {
  return gpu.mig.current == model::MigMode::Enabled && gpu.mig.instances.empty();
}

Finding judge_mig_empty(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  if (!std::any_of(gpus.begin(), gpus.end(), knows_mig)) return skip("no GPU has MIG");
  Tally tally;
  for (const auto& gpu : gpus) {
    if (!mig_empty(gpu)) continue;
    tally.found(gpu_label(gpu), {fmt::format("NVML, GPU {}", gpu.index), "MIG on, 0 instances"},
                fmt::to_string(gpu.index));
  }
  if (!tally.any_bad()) return ok("every GPU with MIG on has instances");
  return fail(fmt::format("MIG is on without instances, so no program can run: {}", tally.who()),
              tally.bad)
      .advise(
          tally.command("sudo nvidia-smi mig -i @ -cgi 0 -C") +
          "  # one instance of the whole GPU; others: nvidia-smi mig -lgip; MIG off: nvidia-smi "
          "-mig 0");
}

// Profile 0 is the largest on every card: the GPU as one instance.
Steps fix_mig_empty(const Facts& f) {
  Steps steps;
  for (const auto& gpu : f.inventory().gpus) {
    if (!mig_empty(gpu)) continue;
    steps.emplace_back(
        RunProgram{{"nvidia-smi", "mig", "-i", fmt::to_string(gpu.index), "-cgi", "0", "-C"}});
  }
  return steps;
}

constexpr Check kSharingChecks[] = {
    {.id = "gpu.compute-mode",
     .reference = "H33",
     .area = Area::Gpu,
     .fix_class = FixClass::OnRequest,
     .title = "several processes may use each GPU",
     .reads = "NVML",
     .cause = "An exclusive compute mode is set and MPS does not run: the second process gets 46 "
              "\"all CUDA-capable devices are busy or unavailable\".",
     .remedy = "sudo nvidia-smi -c 0",
     .judge = judge_compute_mode,
     .fix = fix_compute_mode},
    {.id = "mig.pending",
     .reference = "H32",
     .area = Area::Gpu,
     .fix_class = FixClass::OnRequest,
     .title = "no MIG change is pending",
     .reads = "NVML",
     .cause = "MIG mode was changed while the GPU was in use; it takes effect at the next reset.",
     .remedy = "sudo nvidia-smi --gpu-reset -i INDEX",
     .judge = judge_mig_pending,
     .fix = fix_mig_pending,
     .by_hand = "programs use the GPU, and a reset would kill them"},
    {.id = "mig.empty",
     .reference = "H32",
     .area = Area::Gpu,
     .fix_class = FixClass::OnRequest,
     .title = "every GPU with MIG on has instances",
     .reads = "NVML",
     .cause =
         "MIG was enabled but no instance was created; nvidia-smi lists the GPU, but programs find "
         "no device. Instances are also lost when the driver is reloaded.",
     .remedy = "sudo nvidia-smi mig -i INDEX -cgi 0 -C",
     .judge = judge_mig_empty,
     .fix = fix_mig_empty,
     .afterwards = "one instance has the whole GPU; for others: nvidia-smi mig -lgip"},
};

}  // namespace

std::span<const Check> sharing_checks() {
  return kSharingChecks;
}

}  // namespace gantry::doctor
