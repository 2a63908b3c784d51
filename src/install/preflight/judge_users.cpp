// SPDX-License-Identifier: Apache-2.0
// Who would lose the driver that is loaded now.
#include "base/core/printable.hpp"
#include "install/kernel_module/module_order.hpp"
#include "install/preflight/judge_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::preflight {
namespace {

using kernel_module::UnloadBlocker;
using Reason = UnloadBlocker::Reason;

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

bool is_held(const UnloadBlocker& blocker) {
  return blocker.reason == Reason::References;
}

// A module that nothing holds has no users, whatever can be read.
void judge_unreadable(Judgement& j) {
  const auto blockers = kernel_module::unload_order(j.facts.modules).blockers;
  if (j.facts.unreadable.empty() || std::none_of(blockers.begin(), blockers.end(), is_held)) return;
  // Another finding says that root is needed.
  j.add(j.facts.rights.uid == 0 ? Severity::Blocks : Severity::Warns, "gpu-users-unknown",
        {.sentence =
             fmt::format("{}, so it cannot be known whether a process uses driver {}",
                         vfio::describe_unreadable(j.facts.unreadable), j.facts.loaded.version),
         .cause = "Something holds its modules.",
         .remedy = std::string(vfio::kReadAllProcesses)});
}

// Whether the processes that were found hold the modules as often as the kernel counts. Each open
// node counts once or twice: for its device and for its operations.
bool explain_references(const MachineFacts& facts, const std::vector<UnloadBlocker>& blockers) {
  constexpr int kReferencesOfOpen = 2;
  int counted = 0;
  int known = 0;
  for (const auto& blocker : blockers) counted += is_held(blocker) ? blocker.references : 0;
  for (const auto& holder : facts.holders)
    known += kReferencesOfOpen * static_cast<int>(holder.opens);
  return counted <= known;
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
  const auto blockers = kernel_module::unload_order(j.facts.modules).blockers;
  const bool explained = explain_references(j.facts, blockers);
  for (const auto& blocker : blockers) {
    if (is_held(blocker) && explained) continue;  // the processes were named already
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
  judge_unreadable(judgement);
  judge_containers(judgement);
  judge_unload(judgement);
}

}  // namespace gantry::preflight
