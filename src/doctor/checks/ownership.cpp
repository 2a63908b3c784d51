// SPDX-License-Identifier: Apache-2.0
// Who owns the GPUs of a node: the ledger, and changes of an owner that were not finished.
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/run_checks.hpp"
#include "doctor/engine/tally.hpp"
#include "gpu/ownership/owner_change.hpp"
#include "vm/vgpu/read_host.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

constexpr std::string_view kLedger = ownership::kOwnershipPath;

// A Skip if there is no ledger or it cannot be read by us; nullopt if it can be judged.
std::optional<Finding> no_ledger(const Facts& f) {
  if (f.denied(kLedger)) return skip_needs_root(kLedger);
  if (!f.host().exists(kLedger)) return skip("no agent has run here");
  return std::nullopt;
}

Finding judge_ledger(const Facts& f) {
  if (auto nothing = no_ledger(f)) return *std::move(nothing);
  const auto state = ownership::OwnershipStore::peek(f.host());
  if (!state.ok()) {
    auto finding = fail("the owners of the GPUs are unknown, so no GPU is offered",
                        {{std::string(kLedger), state.error().text()}});
    return state.error().code() == Errc::Unsupported
               ? std::move(finding).advise("install the newer version of gantry again")
               : finding;
  }
  std::vector<Evidence> read;
  for (const auto& entry : state->gpus)
    read.push_back({entry.gpu.sysfs(), std::string(to_string(entry.owner))});
  return ok("the owner of every GPU is known", read);
}

Finding judge_unfinished(const Facts& f) {
  if (auto nothing = no_ledger(f)) return *std::move(nothing);
  const auto state = ownership::OwnershipStore::peek(f.host());
  if (!state.ok()) return skip("the ledger cannot be read: see owner.ledger");
  const auto abandoned = ownership::abandoned_changes(f.host(), *state);
  std::vector<Evidence> read;
  std::string names;
  std::string commands;
  for (const auto& intent : abandoned) {
    read.push_back({intent.gpu.sysfs(), describe(intent)});
    names += fmt::format("{}{}", names.empty() ? "" : ", ", intent.gpu.sysfs());
    commands += fmt::format("{}sudo {}", commands.empty() ? "" : "; ",
                            sys::with_root(intent.what, f.host().root()));
  }
  if (abandoned.empty()) return ok("no change of an owner is unfinished");
  return fail(fmt::format("a change of the owner was not finished: {}", names), read)
      .advise(commands + "  # repeats it");
}

bool has_vgpus(const std::vector<vgpu::VgpuGpu>& gpus, const model::PciAddress& address) {
  const auto* gpu = vgpu::find_gpu(gpus, address);
  return gpu != nullptr && !gpu->vgpus.empty();
}

// What a GPU of virtual machines has instead of a vfio driver or vGPUs; "" if all is well.
std::string misplaced(const Facts& f, const std::vector<vgpu::VgpuGpu>& gpus,
                      const model::PciAddress& address) {
  if (!f.host().exists(pci_path(address))) return "";  // a card that was taken out
  const auto link = f.host().link(pci_path(address) + "/driver").value_or("");
  const auto driver = link.substr(link.rfind('/') + 1);
  if (contains(driver, "vfio") || has_vgpus(gpus, address)) return "";
  return driver.empty() ? "no driver" : fmt::format("the driver {}", driver);
}

Finding judge_place(const Facts& f) {
  if (auto nothing = no_ledger(f)) return *std::move(nothing);
  const auto state = ownership::OwnershipStore::peek(f.host());
  if (!state.ok()) return skip("the ledger cannot be read: see owner.ledger");
  const auto gpus = vgpu::read_host(f.host());
  Tally tally;
  for (const auto& entry : state->gpus) {
    if (entry.owner != ownership::Owner::Vm || state->intent(entry.gpu) != nullptr) continue;
    const auto name = entry.gpu.sysfs();
    const auto wrong = misplaced(f, gpus, entry.gpu);
    if (wrong.empty()) {
      tally.good({name, "virtual machines"});
    } else {
      tally.found(fmt::format("{} ({})", name, wrong), {pci_path(entry.gpu) + "/driver", wrong},
                  name);
    }
  }
  if (tally.empty()) return skip("no GPU belongs to virtual machines");
  if (!tally.any_bad()) return ok("the GPUs of virtual machines are ready for them", tally.well);
  return warn(fmt::format("belongs to virtual machines, but is not ready for them: {}; no pod gets "
                          "it",
                          tally.who()),
              tally.bad)
      .advise(tally.command("sudo gantry vfio release @") +
              "  # gives it back to containers; gantry vfio bind --persist keeps it over reboots");
}

constexpr Check kOwnershipChecks[] = {
    {.id = "owner.ledger",
     .reference = "O1",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "the ledger of GPU owners can be read",
     .reads = kLedger,
     .cause = "The disk damaged the file, or a newer version of Gantry wrote it. The agent offers "
              "no GPU rather than give a virtual machine's GPU to a pod.",
     .remedy = "sudo mv /var/lib/gantry/ledger /var/lib/gantry/ledger.bad  # if no virtual machine "
               "and no resource claim uses a GPU",
     .judge = judge_ledger},
    {.id = "owner.unfinished",
     .reference = "O2",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "no change of a GPU's owner is unfinished",
     .reads = "/var/lib/gantry/ledger, /run/gantry/owner-changes",
     .cause = "A command that changed the owner of a GPU was killed, the machine lost power, or a "
              "write is stuck in the kernel. The GPU is not offered until the command is repeated "
              "or taken back.",
     .remedy = "repeat the command that the finding names",
     .judge = judge_unfinished},
    {.id = "owner.driver",
     .reference = "O3",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "a GPU that belongs to virtual machines has a vfio driver or vGPUs",
     .reads = "/var/lib/gantry/ledger, /sys/bus/pci/devices/*/driver",
     .cause = "The ledger remembers the owner over a reboot, the kernel does not remember the "
              "driver. Or another program changed the driver.",
     .remedy = "sudo gantry vfio release ADDRESS",
     .judge = judge_place},
};

}  // namespace

std::span<const Check> ownership_checks() {
  return kOwnershipChecks;
}

}  // namespace gantry::doctor
