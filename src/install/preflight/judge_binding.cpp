// SPDX-License-Identifier: Apache-2.0
// Other drivers on the GPUs: nouveau, nova, framebuffers.
#include "base/core/text.hpp"
#include "install/preflight/judge_internal.hpp"
#include "install/preflight/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::preflight {
namespace {

bool is_nova(std::string_view driver) {
  return to_lower(driver).starts_with("nova");
}

void judge_holder(Judgement& j, const GpuFact& gpu) {
  if (gpu.driver == "nouveau") {
    j.block("nouveau-holds-gpu",
            {.sentence = fmt::format("nouveau holds {}", gpu.describe()),
             .cause = "The kernel's own driver was loaded at boot, usually from the initramfs.",
             .remedy = std::string(kForbidNouveau)});
    return;
  }
  const auto& module = gpu.driver_module;
  const auto forbid = then_reboot(
      fmt::format("echo blacklist {0} | sudo tee /etc/modprobe.d/nvidia-no-{0}.conf", module));
  if (is_nova(gpu.driver)) {
    j.block("nova-holds-gpu",
            {.sentence = fmt::format("nova, the kernel's new driver, holds {}", gpu.describe()),
             .cause = "It was loaded at boot, usually from the initramfs.",
             .remedy = forbid});
    return;
  }
  j.block("other-driver-holds-gpu",
          {.sentence = fmt::format("the driver {} holds {}", gpu.driver, gpu.describe()),
           .remedy = forbid});
}

void judge_framebuffers(Judgement& j) {
  const auto display = std::find_if(j.facts.gpus.begin(), j.facts.gpus.end(),
                                    [](const GpuFact& gpu) { return gpu.boot_display; });
  if (display == j.facts.gpus.end()) return;
  for (const auto& framebuffer : j.facts.framebuffers) {
    j.warn("framebuffer-console",
           {.sentence =
                fmt::format("{} shows the console on {}", framebuffer.driver, display->describe()),
            .cause = "When the driver is loaded it takes the GPU over: the console can stay dark.",
            .remedy = "have SSH or a serial console at hand; or choose another display in the "
                      "firmware"});
  }
}

}  // namespace

void judge_binding(Judgement& judgement) {
  for (const auto& gpu : judgement.facts.gpus) {
    if (gpu.driver.empty() || gpu.driver == "nvidia" || gpu.is_for_virtual_machines()) continue;
    judge_holder(judgement, gpu);
  }
  const bool nouveau_holds =
      std::any_of(judgement.facts.gpus.begin(), judgement.facts.gpus.end(),
                  [](const GpuFact& gpu) { return gpu.driver == "nouveau"; });
  if (!nouveau_holds && judgement.facts.is_loaded("nouveau")) {
    judgement.warn("nouveau-loaded",
                   {.sentence = "nouveau is loaded, but holds no GPU",
                    .cause = "It can take a GPU at the next boot, before the driver.",
                    .remedy = std::string(kForbidNouveau)});
  }
  judge_framebuffers(judgement);
}

}  // namespace gantry::preflight
