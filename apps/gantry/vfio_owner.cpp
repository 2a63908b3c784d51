// SPDX-License-Identifier: Apache-2.0
#include "gantry/vfio_owner.hpp"

#include "base/core/printable.hpp"
#include "base/sys/shell_command.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "node/owner_lease/with_ownership.hpp"
#include "vm/vgpu/read_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace gantry::cli {
namespace {

using model::PciAddress;
using ownership::Owner;
using ownership::OwnershipState;

// Programs that bind itself makes let go of a GPU; see is_persistence_daemon() and
// is_dcgm_service() of vm/vfio/plan.hpp.
std::vector<std::string> quiesced_programs() {
  return {"nvidia-persiste", "nv-hostengine"};
}

bool is_recorded(const OwnershipState& ledger, const PciAddress& gpu) {
  const auto* known = ledger.find(gpu);
  return known != nullptr && known->owner == Owner::Vm && ledger.intent(gpu) == nullptr;
}

bool has_vgpus(const std::vector<vgpu::VgpuGpu>& gpus, const PciAddress& gpu) {
  const auto* found = vgpu::find_gpu(gpus, gpu);
  return found != nullptr && !found->vgpus.empty();
}

ownership::OwnerChange change_of(const sys::Host& host, const VfioLease& lease,
                                 const PciAddress& gpu) {
  const auto name = lease.with_addresses ? " " + gpu.sysfs() : std::string();
  return {.gpu = gpu,
          .to = lease.to,
          .use = lease.to == Owner::Vm ? model::AllocationMode::Vm : model::AllocationMode::Whole,
          .what = fmt::format("{}{}{}", lease.command, name, sys::root_flag(host))};
}

Error has_vgpus_instead(const PciAddress& gpu) {
  return Error(Errc::Busy,
               fmt::format("{} is not bound to a vfio driver: virtual machines have its vGPUs",
                           gpu.sysfs()))
      .advise(fmt::format("sudo gantry vgpu remove --all --gpu {}", gpu.sysfs()));
}

// The plugin gets no GPU with vGPUs. Asked with the lease, because `gantry vgpu create` may have
// been at work before.
Status check_no_vgpus(const sys::Host& host, const std::vector<PciAddress>& gpus) {
  const auto found = vgpu::read_host(host);
  for (const auto& gpu : gpus) {
    if (has_vgpus(found, gpu)) return has_vgpus_instead(gpu);
    const auto* known = vgpu::find_gpu(found, gpu);
    if (known != nullptr && known->silent)
      return Error(Errc::Busy, fmt::format("{}: {}", gpu.sysfs(), known->problem));
  }
  return {};
}

// After a failure, a GPU of which no work is unfinished is as it was. If the journals cannot be
// read, nothing is known of any.
owner_lease::JointOutcome outcome_of(const sys::Host& host, const std::vector<PciAddress>& gpus,
                                     Status status) {
  owner_lease::JointOutcome outcome{.status = std::move(status)};
  const auto journals = vfio::read_journals(host);
  if (outcome.status.ok() || !journals.ok()) return outcome;
  for (const auto& gpu : gpus) {
    const bool unfinished =
        std::any_of(journals->begin(), journals->end(), [&](const vfio::Journal& journal) {
          return std::count(journal.targets.begin(), journal.targets.end(), gpu) > 0;
        });
    if (!unfinished && ownership::outcome_of(outcome.status) == ownership::ActOutcome::Unknown)
      outcome.of.emplace(gpu, Error(Errc::Denied, outcome.status.error().text()));
  }
  return outcome;
}

Error advised(Error error) {
  if (error.code() != Errc::Busy || !error.remedy().empty()) return error;
  return std::move(error).advise("end it, or wait for it with --drain");
}

}  // namespace

Result<vfio::BindResult> with_vfio_lease(const sys::Host& host, const VfioLease& lease,
                                         Context& context,
                                         const std::function<Result<vfio::BindResult>()>& act) {
  if (lease.gpus.empty()) return act();
  std::vector<ownership::OwnerChange> changes;
  for (const auto& gpu : lease.gpus) changes.push_back(change_of(host, lease, gpu));
  owner_lease::LeaseOptions options{
      .wait = lease.wait,
      .progress = [&](const std::string& text) { print_note(printable(text), context); },
      .yielding = quiesced_programs()};
  if (lease.in_between) options.yielding = {std::string(owner_lease::kAnyProgram)};
  std::optional<vfio::BindResult> result;
  const auto act_once = [&]() -> Status {
    if (lease.to == Owner::Plugin) GANTRY_CHECK(check_no_vgpus(host, lease.gpus));
    GANTRY_TRY(result, act());
    if (!result->taken_back) return {};
    return Error(Errc::Denied, "taken back");  // so that the owner stays
  };
  auto done = owner_lease::with_ownership(host, changes, options,
                                          [&] { return outcome_of(host, lease.gpus, act_once()); });
  if (result && result->taken_back) return *std::move(result);
  if (!done.ok()) return advised(std::move(done).error());
  return *std::move(result);
}

Result<std::vector<PciAddress>> not_recorded_for_vms(const sys::Host& host,
                                                     const std::vector<PciAddress>& gpus) {
  GANTRY_TRY(const auto ledger, ownership::OwnershipStore::peek(host));
  std::vector<PciAddress> found;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(found),
               [&](const PciAddress& gpu) { return !is_recorded(ledger, gpu); });
  return found;
}

std::vector<PciAddress> recorded_for_others(const sys::Host& host,
                                            const std::vector<PciAddress>& gpus) {
  const auto ledger = ownership::OwnershipStore::peek(host);
  std::vector<PciAddress> found;
  if (!ledger.ok()) return found;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(found), [&](const PciAddress& gpu) {
    return ledger->find(gpu) != nullptr && !is_recorded(*ledger, gpu);
  });
  return found;
}

Result<std::vector<PciAddress>> gpus_to_release(const sys::Host& host,
                                                const vfio::Journal& journal) {
  GANTRY_TRY(const auto ledger, ownership::OwnershipStore::peek(host));
  const auto gpus = vgpu::read_host(host, {});
  std::vector<PciAddress> found;
  for (const auto& target : journal.targets) {
    const bool moves = std::any_of(journal.moves.begin(), journal.moves.end(),
                                   [&](const auto& move) { return move.target == target; });
    const auto* known = ledger.find(target);
    const bool recorded = known != nullptr && known->owner == Owner::Vm;
    if (!moves && recorded && has_vgpus(gpus, target)) return has_vgpus_instead(target);
    const auto* intent = ledger.intent(target);
    const bool unfinished = intent != nullptr && intent->to == Owner::Vm;
    if (moves || recorded || unfinished) found.push_back(target);
  }
  return found;
}

}  // namespace gantry::cli
