// SPDX-License-Identifier: Apache-2.0
// Who would lose the driver that is loaded now.
#include "base/core/printable.hpp"
#include "install/kernel_module/module_order.hpp"
#include "install/preflight/judge_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::preflight {
namespace {

using Reason = kernel_module::UnloadBlocker::Reason;

std::string end_remedy(const HolderFact& holder) {
  const auto& process = holder.process;
  if (!process.pod.empty())
    return fmt::format("evict the pod {}, or wait for it with --drain", printable(process.pod));
  if (!process.unit.empty())
    return fmt::format("sudo systemctl stop {}, or wait for it with --drain",
                       printable(process.unit));
  return fmt::format("end process {}, or wait for it with --drain", process.pid);
}

void judge_holders(Judgement& j) {
  for (const auto& holder : j.facts.holders) {
    if (holder.is_service) {
      j.note("driver-service", {.sentence = fmt::format(
                                    "{} (pid {}) belongs to the driver; it is stopped and started "
                                    "again",
                                    printable(holder.process.name), holder.process.pid)});
      continue;
    }
    const Words words{
        .sentence = describe(holder),
        .cause = fmt::format("Driver {} cannot be unloaded under it.", j.facts.loaded.version),
        .remedy = end_remedy(holder)};
    j.add(j.request.drain ? Severity::Warns : Severity::Blocks, "gpu-in-use", words);
  }
}

void judge_containers(Judgement& j) {
  for (const auto& container : j.facts.containers) {
    const auto owner = container.pod.empty()
                           ? fmt::format("container {}", container.id.substr(0, 12))
                           : fmt::format("a container of pod {}", printable(container.pod));
    j.warn("container-has-old-driver",
           {.sentence = fmt::format("{} (pid {}, {}) has files of the driver that is installed now",
                                    owner, container.pid, printable(container.command)),
            .cause = "It keeps the old libraries, which do not fit the new module.",
            .remedy = "start it again after the installation"});
  }
}

void judge_unload(Judgement& j) {
  if (!j.facts.can_unload) {
    j.block(
        "kernel-cannot-unload",
        {.sentence = fmt::format("driver {} is loaded, and this kernel cannot unload modules",
                                 j.facts.loaded.version),
         .cause = "It was built without CONFIG_MODULE_UNLOAD.",
         .remedy = "keep the old driver from being loaded at boot (echo blacklist nvidia | sudo "
                   "tee /etc/modprobe.d/nvidia-not-now.conf), sudo reboot, then install"});
    return;
  }
  for (const auto& blocker : kernel_module::unload_order(j.facts.modules).blockers) {
    // The processes behind open files were named already.
    if (blocker.reason == Reason::References && !j.facts.holders.empty()) continue;
    const bool foreign = blocker.reason == Reason::ForeignModule;
    j.block(foreign ? "module-used-by-other" : "module-busy",
            {.sentence = kernel_module::describe(blocker),
             .cause = fmt::format("Driver {} cannot be unloaded before.", j.facts.loaded.version),
             .remedy = foreign ? fmt::format("sudo rmmod {}", fmt::join(blocker.users, " "))
                               : "sudo fuser -v /dev/nvidia*  # if it names nobody: sudo reboot"});
  }
}

}  // namespace

void judge_users(Judgement& judgement) {
  if (!judgement.replaces_loaded()) return;
  judgement.note("driver-will-be-replaced",
                 {.sentence = fmt::format("driver {} is loaded and will be unloaded",
                                          judgement.facts.loaded.version)});
  judge_holders(judgement);
  judge_containers(judgement);
  judge_unload(judgement);
}

}  // namespace gantry::preflight
