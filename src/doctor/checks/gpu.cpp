// SPDX-License-Identifier: Apache-2.0
// The GPUs as NVML and the driver's own files describe them.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/tally.hpp"
#include "gpu/model/fabric_reason.hpp"
#include "gpu/procfs/gpus.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr int kMaxNormalCelsius = 90;  // cards throttle themselves slightly above this

// Sentences of the probe about bad memory rows and pages.
bool about_rows(const std::string& reason) {
  return contains(reason, "remap") || contains(reason, "retire");
}

std::string reasons_of(const model::Gpu& gpu) {
  std::string text;
  for (const auto& reason : gpu.health.reasons) text += (text.empty() ? "" : "; ") + reason;
  return text.empty() ? "no reason given" : text;
}

Finding no_gpus(const Facts& f) {
  return skip(f.driver_loaded() ? "the driver shows no GPU" : "the nvidia module is not loaded");
}

Finding judge_lost(const Facts& f) {
  if (f.inventory().gpus.empty()) return no_gpus(f);
  Tally tally;
  for (const auto& obstacle : f.compute_obstacles()) {
    if (obstacle.kind != health::ComputeObstacleKind::GpuLost) continue;
    const auto& gpu = f.inventory().gpus[obstacle.gpus.front()];
    tally.found(gpu_label(gpu), {fmt::format("NVML, GPU {}", gpu.index), reasons_of(gpu)},
                fmt::to_string(gpu.index));
  }
  if (!tally.any_bad()) {
    return ok("no GPU is lost",
              {{"NVML", fmt::format("{} GPU(s) answer", f.inventory().gpus.size())}});
  }
  return fail(fmt::format("lost: {}", tally.who()), tally.bad)
      .advise(tally.command("sudo nvidia-smi --gpu-reset -i @") + " || sudo reboot")
      .unless_explained_by("pci.alive");
}

// A condition and the GPUs that report it: all GPUs report a fault of the machine.
struct Condition {
  std::string reason;
  std::vector<std::string> names;
  std::vector<std::string> indexes;
};

void note(std::vector<Condition>& conditions, const model::Gpu& gpu) {
  const auto reason = reasons_of(gpu);
  auto known = std::find_if(conditions.begin(), conditions.end(),
                            [&](const Condition& c) { return c.reason == reason; });
  if (known == conditions.end()) {
    known = conditions.insert(conditions.end(), Condition{reason, {}, {}});
  }
  known->names.push_back(gpu_label(gpu));
  known->indexes.push_back(fmt::to_string(gpu.index));
}

Finding judge_health(const Facts& f) {
  if (f.inventory().gpus.empty()) return no_gpus(f);
  std::vector<Condition> conditions;
  std::vector<std::string> indexes;
  for (const auto& gpu : f.inventory().gpus) {
    if (gpu.health.state != model::HealthState::Degraded) continue;
    note(conditions, gpu);
    indexes.push_back(fmt::to_string(gpu.index));
  }
  if (conditions.empty()) return ok("every GPU reports that it is healthy");
  std::vector<Evidence> read;
  std::string summary;
  for (const auto& [reason, names, of] : conditions) {
    summary += fmt::format("{}{}: {}", summary.empty() ? "" : "; ", join_names(names), reason);
    read.push_back({fmt::format("NVML, GPU {}", join_names(of)), reason});
  }
  auto finding = warn(summary, read).advise(command_for(indexes, "nvidia-smi -q -i @"));
  const bool only_fabric =
      std::all_of(conditions.begin(), conditions.end(),
                  [](const Condition& c) { return model::is_about_fabric(c.reason); });
  return only_fabric ? std::move(finding).unless_explained_by("fabric.manager") : finding;
}

Finding judge_ecc(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.inventory().gpus) {
    const auto count = gpu.telemetry.ecc_uncorrected_volatile;
    if (!count) continue;
    Evidence read{fmt::format("NVML, GPU {}", gpu.index),
                  fmt::format("volatile uncorrected {}", *count)};
    if (*count == 0) {
      tally.good(std::move(read));
    } else {
      tally.found(fmt::format("{}: {}", gpu_label(gpu), *count), std::move(read),
                  fmt::to_string(gpu.index));
    }
  }
  if (tally.empty()) return skip("no GPU reports memory errors");
  if (!tally.any_bad()) return ok("no uncorrectable memory error", tally.well);
  return warn(fmt::format("uncorrectable memory errors since the driver was loaded: {}",
                          tally.who()),
              tally.bad)
      .advise(tally.command("sudo nvidia-smi --gpu-reset -i @") +
              "  # remaps the row; if it returns, replace the card");
}

Finding judge_remap(const Facts& f) {
  if (f.inventory().gpus.empty()) return no_gpus(f);
  Tally failed;
  Tally waiting;
  for (const auto& gpu : f.inventory().gpus) {
    for (const auto& reason : gpu.health.reasons) {
      if (!about_rows(reason)) continue;
      auto& tally = contains(reason, "failed") ? failed : waiting;
      tally.found(gpu_label(gpu), {fmt::format("NVML, GPU {}", gpu.index), reason},
                  fmt::to_string(gpu.index));
    }
  }
  if (failed.any_bad()) {
    return fail(fmt::format("a memory row could not be remapped: {}", failed.who()), failed.bad)
        .advise(fmt::format("replace {}", failed.who()));
  }
  if (!waiting.any_bad()) return ok("no memory row waits to be remapped");
  return warn(fmt::format("a memory row waits to be remapped: {}", waiting.who()), waiting.bad)
      .advise(waiting.command("sudo nvidia-smi --gpu-reset -i @"));
}

Finding judge_temperature(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.inventory().gpus) {
    const auto degrees = gpu.telemetry.temperature_celsius;
    if (!degrees) continue;
    Evidence read{"NVML", fmt::format("GPU {}: {} C", gpu.index, *degrees)};
    if (*degrees >= kMaxNormalCelsius) {
      tally.found(fmt::format("{} at {} C", gpu_label(gpu), *degrees), std::move(read));
    } else {
      tally.good(std::move(read));
    }
  }
  if (tally.empty()) return skip("no GPU reports its temperature");
  if (!tally.any_bad())
    return ok(fmt::format("all GPUs are below {} C", kMaxNormalCelsius), tally.well);
  return warn(fmt::format("too hot: {}", tally.who()), tally.bad);
}

Finding judge_excluded(const Facts& f) {
  Tally tally;
  const auto gpus = procfs::read_gpus(f.host()).value_or({});
  for (const auto& [path, found, read_error, silent] : gpus) {
    if (silent) return skip(fmt::format("the driver does not answer: {}", read_error));
    if (found.exclusion_line.empty()) continue;
    Evidence read{path, fmt::format("{}: {}", found.exclusion_line, found.excluded ? "Yes" : "No")};
    if (found.excluded) {
      tally.found(found.gpu.pci.sysfs(), std::move(read));
    } else {
      tally.good(std::move(read));
    }
  }
  if (tally.empty()) return skip("the driver does not report which GPUs are excluded");
  if (!tally.any_bad()) return ok("no GPU is excluded", tally.well);
  return warn(fmt::format("excluded by configuration: {}", tally.who()), tally.bad);
}

Finding judge_views(const Facts& f) {
  if (!f.inventory().driver.nvml_error.empty())
    return skip("NVML did not answer: see nvml.answers");
  if (f.inventory().gpus.empty()) return no_gpus(f);
  const auto& differences = f.inventory().differences;
  if (differences.empty()) return ok("kernel and NVML agree about every GPU");
  std::vector<Evidence> read;
  read.reserve(differences.size());
  for (const auto& d : differences) {
    read.push_back({d.what, fmt::format("kernel {}, NVML {}", d.kernel, d.nvml)});
  }
  return warn(fmt::format("kernel and NVML disagree in {} point{}", differences.size(),
                          differences.size() == 1 ? "" : "s"),
              read);
}

constexpr Check kGpuChecks[] = {
    {.id = "gpu.lost",
     .reference = "H29",
     .area = Area::Gpu,
     .title = "no GPU is lost",
     .reads = "NVML",
     .cause = "The GPU no longer answers the driver: it fell off the bus (Xid 79).",
     .remedy = "sudo nvidia-smi --gpu-reset -i INDEX || sudo reboot",
     .judge = judge_lost},
    {.id = "gpu.health",
     .reference = "H29",
     .area = Area::Gpu,
     .title = "every GPU reports that it is healthy",
     .reads = "NVML",
     .cause = "The GPU answers, but reports the condition above.",
     .remedy = "nvidia-smi -q",
     .judge = judge_health},
    {.id = "gpu.ecc",
     .reference = "H28",
     .area = Area::Gpu,
     .title = "no uncorrectable memory error",
     .reads = "NVML",
     .cause = "A memory cell is failing (Xid 48, 94, 95).",
     .remedy =
         "sudo nvidia-smi --gpu-reset -i INDEX  # remaps the row; if it returns, replace the card",
     .judge = judge_ecc},
    {.id = "gpu.remap",
     .reference = "H28",
     .area = Area::Gpu,
     .title = "no memory row waits to be remapped",
     .reads = "NVML",
     .cause = "A bad row was found; a spare row replaces it at the next reset (Xid 63, 64).",
     .remedy = "sudo nvidia-smi --gpu-reset -i INDEX",
     .judge = judge_remap},
    {.id = "gpu.temperature",
     .reference = "H27",
     .area = Area::Gpu,
     .title = "no GPU is too hot",
     .reads = "NVML",
     .cause =
         "Bad airflow, a broken fan or a hot room: the GPU slows down and finally switches off.",
     .remedy = "nvidia-smi -q -d TEMPERATURE,PERFORMANCE",
     .judge = judge_temperature},
    {.id = "gpu.excluded",
     .reference = "H14",
     .area = Area::Gpu,
     .title = "no GPU is excluded by configuration",
     .reads = "/proc/driver/nvidia/gpus/*/information",
     .cause = "NVreg_ExcludedGpus (formerly GpuBlacklist) names it.",
     .remedy =
         "grep -r NVreg_Excluded /etc/modprobe.d  # remove it, sudo update-initramfs -u, reboot",
     .judge = judge_excluded},
    {.id = "gpu.views",
     .reference = "H29",
     .area = Area::Gpu,
     .title = "kernel and NVML agree about every GPU",
     .reads = "/proc/driver/nvidia, /sys/bus/pci, NVML",
     .cause = "A GPU was added or removed, or NVML shows another machine than the kernel.",
     .remedy = "gantry info --json; nvidia-smi -q",
     .judge = judge_views},
};

}  // namespace

std::span<const Check> gpu_checks() {
  return kGpuChecks;
}

}  // namespace gantry::doctor
