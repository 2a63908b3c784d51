// SPDX-License-Identifier: Apache-2.0
#include "gantry/vgpu_owner.hpp"

#include "base/core/printable.hpp"
#include "base/sys/shell_command.hpp"
#include "gpu/ownership/change_lock.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "node/owner_lease/with_ownership.hpp"
#include "vm/vgpu/read_host.hpp"
#include "vm/vgpu/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace gantry::cli {
namespace {

using model::AllocationMode;
using model::PciAddress;
using ownership::Owner;

// What completes any change of vGPUs after a crash; it also tells our intents from others.
constexpr std::string_view kFinishVgpus = "gantry vgpu apply --restore";

// The vGPU manager has the GPU open as long as it runs, and it is needed for the change.
std::vector<std::string> vgpu_programs() {
  return {"nvidia-vgpu-mgr", "nvidia-vgpud", "nvidia-persiste"};
}

bool is_vgpu_intent(const ownership::OwnerIntent& intent) {
  return intent.what.starts_with(kFinishVgpus);
}

std::vector<ownership::OwnerChange> changes_of(const sys::Host& host, const VgpuOwners& owners,
                                               const ownership::OwnershipState& ledger) {
  std::vector<ownership::OwnerChange> changes;
  const auto what = fmt::format("{}{}", kFinishVgpus, sys::root_flag(host));
  for (const auto& gpu : owners.with_vgpus) {
    const auto* known = ledger.find(gpu);
    const bool recorded = known != nullptr && known->owner == Owner::Vm;
    if (recorded && ledger.intent(gpu) == nullptr) continue;
    changes.push_back({.gpu = gpu, .to = Owner::Vm, .use = AllocationMode::Vm, .what = what});
  }
  for (const auto& gpu : owners.without_vgpus) {
    const auto* known = ledger.find(gpu);
    const auto* intent = ledger.intent(gpu);
    const bool recorded = known != nullptr && known->owner == Owner::Vm;
    if (!recorded && (intent == nullptr || !is_vgpu_intent(*intent))) continue;
    changes.push_back(
        {.gpu = gpu, .to = Owner::Plugin, .use = AllocationMode::Whole, .what = what});
  }
  return changes;
}

// The locks of the GPUs that need no lease, so that no other command changes their owner meanwhile.
Result<std::vector<ownership::ChangeLock>> lock_others(
    const sys::Host& host, const VgpuOwners& owners,
    const std::vector<ownership::OwnerChange>& changes) {
  auto gpus = owners.with_vgpus;
  gpus.insert(owners.without_vgpus.begin(), owners.without_vgpus.end());
  for (const auto& change : changes) gpus.erase(change.gpu);
  std::vector<ownership::ChangeLock> locks;
  for (const auto& gpu : gpus) {
    GANTRY_TRY(auto lock, ownership::ChangeLock::take(host, gpu));
    locks.push_back(std::move(lock));
  }
  return locks;
}

bool same_gpus(const std::vector<ownership::OwnerChange>& a,
               const std::vector<ownership::OwnerChange>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.gpu == other.gpu && one.to == other.to;
  });
}

Error owner_changed() {
  return Error(Errc::Busy, "another command changed the owner of a GPU at the same time")
      .advise("repeat the command");
}

// Another command may have created a vGPU after the GPUs were looked at. Internal: the GPUs stay
// withdrawn, and `gantry vgpu apply --restore` records what they have.
Status check_without_vgpus(const sys::Host& host, const VgpuOwners& owners) {
  const auto gpus = vgpu::read_host(host);
  for (const auto& address : owners.without_vgpus) {
    const auto* gpu = vgpu::find_gpu(gpus, address);
    if (gpu == nullptr) continue;
    if (gpu->silent) {
      return Error(Errc::Internal, fmt::format("{}: {}", address.sysfs(), gpu->problem))
          .advise(fmt::format("sudo {}", kFinishVgpus));
    }
    if (gpu->vgpus.empty()) continue;
    return Error(Errc::Internal, fmt::format("{} still has vGPUs: another command created one at "
                                             "the same time",
                                             address.sysfs()))
        .advise(fmt::format("sudo {}", kFinishVgpus));
  }
  return {};
}

// If a GPU could not be restored, its vGPUs are unknown. Its change stays recorded until the
// command is repeated.
std::map<PciAddress, Status> unfinished_gpus(const vgpu::ChangeReport& report) {
  std::map<PciAddress, Status> of;
  for (const auto& [gpu, error] : report.failed)
    of.emplace(gpu, Error(Errc::Internal, error.text()));
  return of;
}

}  // namespace

VgpuOwners owners_after_create(const PciAddress& gpu) {
  return {.with_vgpus = {gpu}, .without_vgpus = {}};
}

VgpuOwners owners_after_remove(const std::vector<vgpu::VgpuGpu>& gpus,
                               const std::vector<std::string>& ids) {
  const auto goes = [&](const vgpu::Vgpu& one) {
    return std::find(ids.begin(), ids.end(), one.id()) != ids.end();
  };
  VgpuOwners owners;
  for (const auto& gpu : gpus) {
    if (std::none_of(gpu.vgpus.begin(), gpu.vgpus.end(), goes)) continue;
    const bool all = std::all_of(gpu.vgpus.begin(), gpu.vgpus.end(), goes);
    (all ? owners.without_vgpus : owners.with_vgpus).insert(gpu.address);
  }
  return owners;
}

VgpuOwners owners_after_apply(const std::vector<vgpu::DesiredVgpus>& wanted) {
  VgpuOwners owners;
  for (const auto& one : wanted) {
    const bool any = std::any_of(one.counts.begin(), one.counts.end(),
                                 [](const auto& count) { return count.second > 0; });
    (any ? owners.with_vgpus : owners.without_vgpus).insert(one.gpu);
  }
  return owners;
}

Result<VgpuOwners> owners_after_restore(const sys::Host& host) {
  GANTRY_TRY(const auto intent, vgpu::read_intent(host));
  GANTRY_TRY(const auto journal, vgpu::read_journal(host));
  GANTRY_TRY(const auto ledger, ownership::OwnershipStore::peek(host));
  VgpuOwners owners;
  for (const auto& gpu : intent.gpus()) owners.with_vgpus.insert(gpu);
  std::vector<PciAddress> others;
  if (journal) others = journal->gpus;
  for (const auto& begun : ledger.intents) {
    if (is_vgpu_intent(begun)) others.push_back(begun.gpu);
  }
  for (const auto& gpu : others) {
    if (!owners.with_vgpus.contains(gpu)) owners.without_vgpus.insert(gpu);
  }
  return owners;
}

Result<vgpu::ChangeReport> with_vgpu_lease(const sys::Host& host, const VgpuOwners& owners,
                                           Context& context,
                                           const std::function<Result<vgpu::ChangeReport>()>& act) {
  GANTRY_TRY(const auto before, ownership::OwnershipStore::peek(host));
  const auto changes = changes_of(host, owners, before);
  GANTRY_TRY(const auto locks, lock_others(host, owners, changes));
  GANTRY_TRY(const auto ledger, ownership::OwnershipStore::peek(host));
  if (!same_gpus(changes, changes_of(host, owners, ledger))) return owner_changed();
  if (changes.empty()) return act();
  std::optional<vgpu::ChangeReport> report;
  const auto act_once = [&]() -> Status {
    GANTRY_TRY(report, act());
    return check_without_vgpus(host, owners);
  };
  const auto done = owner_lease::with_ownership(
      host, changes,
      {.progress = [&](const std::string& text) { print_note(printable(text), context); },
       .yielding = vgpu_programs()},
      [&] {
        owner_lease::JointOutcome outcome{.status = act_once()};
        if (outcome.status.ok()) outcome.of = unfinished_gpus(*report);
        return outcome;
      });
  if (!done.ok()) return done.error();
  return *std::move(report);
}

}  // namespace gantry::cli
