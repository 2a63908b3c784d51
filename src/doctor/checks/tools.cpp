// SPDX-License-Identifier: Apache-2.0
// The tools that query the GPUs: nvidia-smi and NVML.
#include "doctor/checks/check_tables_internal.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

Finding judge_smi(const Facts& f) {
  if (f.inventory().driver.version.empty()) return skip("the nvidia module is not loaded");
  for (const auto& file : f.inventory().files) {
    if (file.path.ends_with("/nvidia-smi"))
      return ok("nvidia-smi is installed", {{file.path, "present"}});
  }
  const auto& version = f.inventory().driver.version;
  return info("nvidia-smi was not found", {{"/usr/bin/nvidia-smi", "(absent)"}})
      .advise(
          fmt::format("sudo apt install nvidia-utils-{}", version.substr(0, version.find('.'))));
}

Finding judge_nvml(const Facts& f) {
  const auto& driver = f.inventory().driver;
  if (driver.version.empty()) return skip("the nvidia module is not loaded");
  if (driver.nvml_error.empty()) return ok("NVML answers", {{"NVML", driver.library_version}});
  return fail("NVML does not answer", {{"NVML", driver.nvml_error}})
      .unless_explained_by("module.mismatch node.missing node.numbers gpu.lost pci.alive");
}

constexpr Check kToolsChecks[] = {
    {.id = "lib.smi",
     .reference = "C1",
     .area = Area::Userland,
     .title = "nvidia-smi is installed",
     .reads = "standard directories, known driver roots",
     .cause =
         "The driver's utility package is missing. GPUs work, but users and scripts lack the tool.",
     .remedy = "sudo apt install nvidia-utils-VERSION",
     .judge = judge_smi},
    {.id = "nvml.answers",
     .reference = "H22",
     .area = Area::Userland,
     .title = "NVML answers",
     .reads = "libnvidia-ml.so.1",
     .cause =
         "Module and libraries differ, a node is missing or not accessible, or the GPU hangs: see "
         "module.mismatch, node.missing, node.mode, log.xid.",
     .remedy = "nvidia-smi; sudo dmesg | grep NVRM | tail",
     .judge = judge_nvml},
};

}  // namespace

std::span<const Check> tool_checks() {
  return kToolsChecks;
}

}  // namespace gantry::doctor
