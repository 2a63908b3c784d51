// SPDX-License-Identifier: Apache-2.0
#include "gantry/mig_owner.hpp"

#include "base/core/printable.hpp"
#include "gpu/driver/device_nodes.hpp"
#include "gpu/ownership/change_lock.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "gpu/procfs/gpus.hpp"
#include "node/owner_lease/with_ownership.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

using mig_change::Step;
using model::AllocationMode;
using ownership::Owner;

// What tells our intents from those of other commands.
constexpr std::string_view kMigCommand = "gantry mig ";

struct MigNodes {
  std::optional<std::uint32_t> minor;  // of the GPU
  procfs::MigMinors minors;

  void add(std::optional<std::uint32_t> number, std::vector<std::string>& nodes) const {
    if (number) nodes.push_back(driver::capability_node(*number));
  }
  void add_gpu_instance(unsigned id, std::vector<std::string>& nodes) const {
    if (minor) add(minors.gpu_instance(*minor, id), nodes);
  }
  void add_compute_instance(unsigned id, unsigned compute, std::vector<std::string>& nodes) const {
    if (minor) add(minors.compute_instance(*minor, id, compute), nodes);
  }
};

MigNodes read_nodes(const sys::Host& host, const model::PciAddress& gpu) {
  MigNodes nodes;
  const auto known = procfs::read_gpu(host, gpu);
  if (known.ok()) nodes.minor = known->gpu.minor;
  if (auto minors = driver::read_mig_minors(host); minors.ok()) nodes.minors = *std::move(minors);
  return nodes;
}

// The use that the ledger has afterwards.
AllocationMode use_after(const ownership::OwnershipState& ledger, const MigLease& lease) {
  for (const auto& step : lease.steps) {
    if (step.kind == Step::Kind::SetMode)
      return step.enable ? AllocationMode::Mig : AllocationMode::Whole;
  }
  if (const auto* known = ledger.find(lease.gpu.pci)) return known->use;
  return lease.gpu.current == model::MigMode::Enabled ? AllocationMode::Mig : AllocationMode::Whole;
}

Error advise_drain(Error error) {
  if (error.code() != Errc::Busy || !error.remedy().empty()) return error;
  return std::move(error).advise("end it, or wait for it with --drain SECONDS");
}

}  // namespace

std::vector<std::string> mig_nodes(const sys::Host& host, const mig::MigGpu& gpu,
                                   unsigned gpu_instance, unsigned compute_instance) {
  std::vector<std::string> nodes;
  read_nodes(host, gpu.pci).add_compute_instance(gpu_instance, compute_instance, nodes);
  return nodes;
}

std::string name_process(const sys::Host& host, std::uint32_t pid) {
  const auto command = host.read_value(fmt::format("/proc/{}/comm", pid)).value_or("");
  if (command.empty()) return fmt::format("process {}", pid);
  return fmt::format("process {} ({})", pid, printable(command));
}

// The node of a GPU instance is also open in the users of its other compute instances, so it counts
// only if the GPU instance goes.
std::optional<ownership::ChangedParts> parts_of(const sys::Host& host, const mig::MigGpu& gpu,
                                                const std::vector<Step>& steps) {
  if (mig_change::changes_mode(steps)) return std::nullopt;
  ownership::ChangedParts parts;
  for (const auto& uuid : mig_change::kept_instances(gpu, steps)) parts.kept.push_back(uuid.text);
  const auto nodes = read_nodes(host, gpu.pci);
  for (const auto& going : mig_change::going_instances(steps)) {
    if (!going.uuid.text.empty()) parts.going.push_back(going.uuid.text);
    if (nodes.minor)
      parts.going.push_back(fmt::format("nvidia{}/gi{}", *nodes.minor, going.gpu_instance));
    nodes.add_compute_instance(going.gpu_instance, going.compute_instance, parts.nodes);
  }
  for (const auto& step : steps) {
    if (step.kind == Step::Kind::DestroyInstance)
      nodes.add_gpu_instance(step.gpu_instance, parts.nodes);
  }
  return parts;
}

Status check_no_other_change(const sys::Host& host, const model::PciAddress& gpu) {
  GANTRY_TRY(const auto ledger, ownership::OwnershipStore::peek(host));
  const auto* known = ledger.find(gpu);
  if (known != nullptr && known->owner == Owner::Vm)
    return Error(Errc::Denied, fmt::format("{} belongs to virtual machines", gpu.sysfs()))
        .advise(fmt::format("take it back first: sudo gantry vfio release {}", gpu.sysfs()));
  const auto* intent = ledger.intent(gpu);
  if (intent == nullptr || intent->what.starts_with(kMigCommand)) return {};
  return Error(Errc::Busy,
               fmt::format("the owner of {} is being changed: {}", gpu.sysfs(), describe(*intent)))
      .advise(fmt::format("if that has ended, repeat it first: {}", intent->what));
}

Status with_mig_lease(const sys::Host& host, const MigLease& lease, Context& context,
                      const std::function<Status()>& act) {
  GANTRY_TRY(const auto ledger, ownership::OwnershipStore::peek(host));
  if (lease.steps.empty() && ledger.intent(lease.gpu.pci) == nullptr) {
    GANTRY_TRY(const auto lock, ownership::ChangeLock::take(host, lease.gpu.pci));
    return act();
  }
  const auto* known = ledger.find(lease.gpu.pci);
  const ownership::OwnerChange change{.gpu = lease.gpu.pci,
                                      .to = known == nullptr ? Owner::Plugin : known->owner,
                                      .use = use_after(ledger, lease),
                                      .what = lease.what,
                                      .parts = parts_of(host, lease.gpu, lease.steps)};
  auto done = owner_lease::with_ownership(
      host, change,
      {.wait = lease.wait,
       .progress = [&](const std::string& text) { print_note(printable(text), context); }},
      act);
  if (!done.ok()) return advise_drain(std::move(done).error());
  return {};
}

}  // namespace gantry::cli
