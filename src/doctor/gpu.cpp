// SPDX-License-Identifier: Apache-2.0
// The GPUs as NVML and the driver's own files describe them.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr int kHot = 90;  // degrees: cards slow themselves down a little above

std::string named(const model::Gpu& gpu) {
  return fmt::format("GPU {} ({})", gpu.index, gpu.pci.sysfs());
}

// Bad memory rows and pages as the probe words them.
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
  const auto& gpus = f.inventory().gpus;
  if (gpus.empty()) return no_gpus(f);
  for (const auto& gpu : gpus) {
    if (gpu.health.state == model::HealthState::Lost) {
      return fail(named(gpu) + " is lost", {{"NVML", reasons_of(gpu)}});
    }
  }
  return ok("no GPU is lost", {{"NVML", fmt::format("{} GPU(s) answer", gpus.size())}});
}

Finding judge_health(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  if (gpus.empty()) return no_gpus(f);
  for (const auto& gpu : gpus) {
    if (gpu.health.state == model::HealthState::Degraded) {
      return warn(fmt::format("{}: {}", named(gpu), reasons_of(gpu)), {{"NVML", reasons_of(gpu)}});
    }
  }
  return ok("every GPU says it is well");
}

Finding judge_ecc(const Facts& f) {
  bool any = false;
  for (const auto& gpu : f.inventory().gpus) {
    const auto count = gpu.telemetry.ecc_uncorrected_volatile;
    if (!count) continue;
    any = true;
    if (*count == 0) continue;
    return warn(fmt::format("{}: {} uncorrectable memory error(s) since the driver was loaded",
                            named(gpu), *count),
                {{"NVML", fmt::format("volatile uncorrected {}", *count)}});
  }
  if (!any) return skip("no GPU counts memory errors");
  return ok("no uncorrectable memory error", {{"NVML", "volatile uncorrected 0"}});
}

Finding judge_remap(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  if (gpus.empty()) return no_gpus(f);
  for (const auto& gpu : gpus) {
    for (const auto& reason : gpu.health.reasons) {
      if (!about_rows(reason)) continue;
      const std::vector<Evidence> read{{"NVML", reason}};
      if (contains(reason, "failed")) {
        return fail(named(gpu) + ": a memory row could not be remapped", read)
            .advise("replace the card");
      }
      return warn(named(gpu) + ": a memory row waits to be remapped", read);
    }
  }
  return ok("no memory row waits to be remapped");
}

Finding judge_temperature(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.inventory().gpus) {
    const auto degrees = gpu.telemetry.temperature_celsius;
    if (!degrees) continue;
    read.push_back({"NVML", fmt::format("GPU {}: {} C", gpu.index, *degrees)});
    if (*degrees >= kHot) return warn(fmt::format("{} is at {} C", named(gpu), *degrees), read);
  }
  if (read.empty()) return skip("no GPU tells its temperature");
  return ok(fmt::format("all GPUs are below {} C", kHot), read);
}

Finding judge_excluded(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = fmt::format("/proc/driver/nvidia/gpus/{}/information", gpu.address.sysfs());
    const auto text = f.host().read(path, 65536);
    if (!text.ok()) continue;
    for (auto line : lines(*text)) {
      if (!line.starts_with("GPU Excluded:")) continue;
      const std::string value(trim(line.substr(13)));
      read.push_back({path, "GPU Excluded: " + value});
      if (value == "Yes") {
        return warn(fmt::format("{} is excluded by configuration", gpu.address.sysfs()), read);
      }
    }
  }
  if (read.empty()) return skip("the driver does not tell which GPUs are excluded");
  return ok("no GPU is excluded", read);
}

Finding judge_views(const Facts& f) {
  if (!f.inventory().driver.nvml_error.empty())
    return skip("NVML did not answer: see nvml.answers");
  if (f.inventory().gpus.empty()) return no_gpus(f);
  const auto& differences = f.inventory().differences;
  if (differences.empty()) return ok("kernel and NVML agree about every GPU");
  std::vector<Evidence> read;
  for (const auto& d : differences) {
    read.push_back({d.what, fmt::format("kernel {}, NVML {}", d.kernel, d.nvml)});
  }
  return warn(fmt::format("kernel and NVML disagree in {} point(s)", differences.size()), read);
}

constexpr Check kChecks[] = {
    {.id = "gpu.lost",
     .reference = "H29",
     .area = Area::Gpu,
     .title = "no GPU is lost",
     .reads = "NVML",
     .cause = "The GPU does not answer the driver any more (fell off the bus) or asks for a reset.",
     .remedy = "sudo nvidia-smi --gpu-reset -i INDEX || sudo reboot",
     .judge = judge_lost},
    {.id = "gpu.health",
     .reference = "H29",
     .area = Area::Gpu,
     .title = "every GPU says it is well",
     .reads = "NVML",
     .cause = "The GPU works, but reports the conditions above.",
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
     .cause = "A bad row was found; the spare one is taken at the next reset (Xid 63, 64).",
     .remedy = "sudo nvidia-smi --gpu-reset -i INDEX",
     .judge = judge_remap},
    {.id = "gpu.temperature",
     .reference = "H27",
     .area = Area::Gpu,
     .title = "no GPU is too hot",
     .reads = "NVML",
     .cause = "Airflow, fans or room: the GPU slows itself down and at last switches off.",
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
     .cause = "A GPU came or went, or programs see another machine than the kernel shows.",
     .remedy = "gantry info --json; nvidia-smi -q",
     .judge = judge_views},
};

}  // namespace

std::span<const Check> gpu_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
