// SPDX-License-Identifier: Apache-2.0
// The GPUs against the driver that is asked for.
#include "install/preflight/judge_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace gantry::preflight {
namespace {

std::vector<const GpuFact*> gpus_for_driver(const MachineFacts& facts) {
  std::vector<const GpuFact*> found;
  for (const auto& gpu : facts.gpus) {
    if (!gpu.is_for_virtual_machines()) found.push_back(&gpu);
  }
  return found;
}

std::string gpus_of(const Judgement& j, Architecture architecture) {
  std::vector<std::string> names;
  for (const auto* gpu : gpus_for_driver(j.facts)) {
    if (gpu->architecture == architecture) names.push_back(gpu->describe());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// False if there is nothing to judge a driver by.
bool judge_presence(Judgement& j) {
  if (j.facts.wsl) {
    j.block("wsl", {.sentence = "this is the Windows Subsystem for Linux",
                    .cause = "Its GPUs are driven by the driver of Windows.",
                    .remedy = "install the driver in Windows"});
    return false;
  }
  if (j.facts.gpus.empty()) {
    j.block("no-gpu",
            {.sentence = "this machine has no NVIDIA GPU",
             .cause = j.facts.guest ? "No GPU was given to this virtual machine." : "",
             .remedy = "lspci -d 10de:  # must show one; select only nodes with GPUs for the "
                       "installer"});
    return false;
  }
  if (!gpus_for_driver(j.facts).empty()) return true;
  j.block(
      "gpus-for-virtual-machines",
      {.sentence = "VFIO holds every GPU of this machine, for virtual machines",
       .remedy =
           "gantry vfio status, then give those for containers back: sudo gantry vfio release"});
  return false;
}

void judge_each(Judgement& j) {
  const auto lost = std::count_if(j.facts.gpus.begin(), j.facts.gpus.end(),
                                  [](const GpuFact& gpu) { return gpu.lost; });
  const bool all_lost = lost == static_cast<std::ptrdiff_t>(j.facts.gpus.size());
  for (const auto& gpu : j.facts.gpus) {
    if (gpu.is_for_virtual_machines()) {
      j.note("gpu-for-virtual-machines",
             {.sentence = fmt::format("{} is reserved for virtual machines ({}); the driver will "
                                      "not have it",
                                      gpu.describe(), gpu.driver)});
    }
    if (gpu.lost) {
      j.add(all_lost ? Severity::Blocks : Severity::Warns, "gpu-lost",
            {.sentence = fmt::format("{} has fallen off the bus", gpu.describe()),
             .cause = "Its configuration space reads all ones.",
             .remedy = "sudo reboot  # if it comes back: check power cables, riser, temperature"});
    }
    if (gpu.architecture == Architecture::Unknown) {
      j.warn("gpu-unknown",
             {.sentence = fmt::format("the generation of {} is not known", gpu.describe()),
              .cause = "It is newer than this gantry, or very old: whether the driver supports it "
                       "was not checked."});
    }
  }
}

std::string branch_advice(const Judgement& j) {
  const auto architectures = j.facts.architectures();
  const auto common = common_branches(architectures);
  if (!common) {
    return "no branch drives all GPUs of this machine: take some of them out, or give them to "
           "virtual machines with gantry vfio bind";
  }
  if (common->last == 0)
    return fmt::format("choose a version of branch {} or later", common->first);
  return fmt::format("choose a version of branch {} (branches {} to {} drive every GPU here)",
                     common->last, common->first, common->last);
}

// True if the branch drives all of them.
bool judge_branch(Judgement& j) {
  std::set<Architecture> seen;
  bool fits = true;
  for (const auto* gpu : gpus_for_driver(j.facts)) {
    if (!seen.insert(gpu->architecture).second) continue;
    const auto reason = reason_unsupported(gpu->architecture, j.version->branch);
    if (!reason) continue;
    fits = false;
    j.block("branch-unsupported",
            {.sentence = fmt::format("driver {} cannot drive {}", version_of(j.request),
                                     gpus_of(j, gpu->architecture)),
             .cause = *reason,
             .remedy = branch_advice(j)});
  }
  return fits;
}

void judge_flavour(Judgement& j) {
  const auto architectures = j.facts.architectures();
  const auto flavour = choose_flavour(architectures, j.version->branch, j.wanted_flavour());
  if (!flavour.ok()) {
    j.block("flavour-unsupported",
            {.sentence = flavour.error().cause(), .remedy = flavour.error().remedy()});
    return;
  }
  j.note("flavour",
         {.sentence = fmt::format("the {} kernel modules fit the GPUs", to_string(*flavour))});
}

void judge_vgpu(Judgement& j) {
  const bool guest_driver = j.wants_guest_driver();
  bool any_vgpu = false;
  for (const auto& gpu : j.facts.gpus) {
    if (!gpu.is_vgpu) continue;
    any_vgpu = true;
    if (!guest_driver) {
      j.block("vgpu-needs-guest-driver",
              {.sentence = fmt::format("{} is a vGPU, which the driver for whole GPUs does not "
                                       "drive",
                                       gpu.describe()),
               .remedy = "use the guest driver of NVIDIA AI Enterprise or vGPU (--source grid, "
                         "NVIDIA-Linux-x86_64-VERSION-grid.run)"});
    }
    const auto host = DriverVersion::parse(gpu.vgpu_host_driver);
    if (guest_driver && host && j.version && j.version->branch > host->branch) {
      j.warn("vgpu-host-older",
             {.sentence = fmt::format("the vGPU host of {} has driver {}, older than {}",
                                      gpu.describe(), gpu.vgpu_host_driver, version_of(j.request)),
              .cause = "A host accepts guest drivers of its own branch and of some older ones.",
              .remedy = fmt::format("use a guest driver of branch {}", host->branch)});
    }
  }
  if (!guest_driver || any_vgpu || j.facts.gpus.empty()) return;
  const Words words{
      .sentence = "the guest driver (GRID) was asked for, and this machine has whole GPUs",
      .cause = j.facts.guest ? "In a virtual machine with a whole GPU it works only with a licence."
                             : "It is made for virtual machines.",
      .remedy = "use the standard driver, --source run (NVIDIA-Linux-x86_64-VERSION.run)"};
  j.add(j.facts.guest ? Severity::Warns : Severity::Blocks, "guest-driver-on-whole-gpu", words);
}

}  // namespace

void judge_gpus(Judgement& judgement) {
  if (!judge_presence(judgement)) return;
  judge_each(judgement);
  judge_vgpu(judgement);
  if (judgement.version && judge_branch(judgement)) judge_flavour(judgement);
  if (judgement.facts.nvswitches == 0) return;
  judgement.note("fabric-manager",
                 {.sentence = fmt::format(
                      "{} NVSwitch{}: the fabric manager of the same version is "
                      "needed",
                      judgement.facts.nvswitches, judgement.facts.nvswitches == 1 ? "" : "es"),
                  .cause = "Without it CUDA fails with 802, \"system not yet initialized\"."});
}

}  // namespace gantry::preflight
