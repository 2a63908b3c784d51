// SPDX-License-Identifier: Apache-2.0
// Changes the owner of a GPU as a transaction: the intent is on disk before the first act, the act
// runs without the ledger's lock, and the new owner is written after it. Every step can be
// repeated.
//
// For commands there is one call that also works beside an agent: with_ownership() of
// node/owner_lease/with_ownership.hpp. It ends here if no agent runs.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/ownership/ownership_store.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gantry::ownership {

// What of a card with MIG a change is about, if not the whole card.
struct ChangedParts {
  std::vector<std::string> kept;  // UUIDs of the instances that stay as they are, with their users
  // UUIDs of those that are removed, and their names as GKE gives them, "nvidia0/gi1": nothing may
  // use them.
  std::vector<std::string> going;
  std::vector<std::string> nodes;  // their device nodes: "/dev/nvidia-caps/nvidia-cap12"
  bool operator==(const ChangedParts&) const = default;
};

struct OwnerChange {
  model::PciAddress gpu;
  Owner to = Owner::Plugin;
  model::AllocationMode use = model::AllocationMode::Whole;
  // The command, as it can be typed again after a crash: "gantry vfio bind 0000:3b:00.0". It is
  // shown to people, by `gantry doctor` among others.
  std::string what;
  // Only the going instances must be unused, and only the kept ones are still offered.
  std::optional<ChangedParts> parts = {};
};

// How an act ended, as far as the owner is concerned.
enum class ActOutcome : std::uint8_t {
  Done,     // the GPU is as the new owner needs it, and this was checked
  Undone,   // it failed, and the GPU is again as it was
  Unknown,  // it failed, and the GPU may be in between
  NotBegun  // it changed nothing: an unfinished change that it was to repeat is still unfinished
};
// Timeout (a write is stuck in the kernel) and Internal (the way back failed) mean Unknown; Busy
// means NotBegun; any other error means that the act undid what it had done.
ActOutcome outcome_of(const Status& act);

// 1. Takes the GPU's ChangeLock. Busy, with the command and since when, if another process changes
//    its owner now.
// 2. Writes the intent. Busy, with the holder, if `usage` or a claim says that the GPU is in use.
//    From here on the GPU is not offered, also after a crash or a reboot.
// 3. Calls `act` without the ledger's lock. It checks its own result: success means that the GPU
//    is as the new owner needs it. Also called if the GPU has this owner already.
// 4. Writes the new owner and removes the intent. If `act` failed, keeps the owner: the intent is
//    removed if the act undid itself, and stays if the outcome is Unknown, or NotBegun after an
//    earlier change that was not finished.
//
// A GPU that the ledger does not know is added as the plugin's. An intent that a process left when
// it died, or whose outcome was Unknown, allows two changes: the same one again, and one to the
// owner that the ledger has, which takes it back. The act must be able to start from any state in
// between.
//
// Busy if an agent runs: it has the ledger. `settle` does step 4 in its own way; an agent may have
// started during the act.
using SettleChange = std::function<Status(const OwnerIntent& intent, ActOutcome outcome)>;
Status change_owner(const sys::Host& host, const OwnerChange& change, const GpuUsage& usage,
                    const std::function<Status()>& act, const SettleChange& settle = {});

// The intent of a change that begins now in this process.
OwnerIntent intent_of(const OwnerChange& change);

// Step 4, once per call and without waiting. Busy while another process has the ledger.
Status settle_change(const sys::Host& host, const OwnerIntent& intent, ActOutcome outcome);
Status settle_change(OwnershipStore& ledger, const OwnerIntent& intent, ActOutcome outcome);

// The changes that a living process works on now: no other process may open their GPUs. Empty if
// the ledger cannot be read.
std::vector<OwnerIntent> changes_under_way(const sys::Host& host);

// The changes that no living process works on: their GPUs stay withdrawn until the change is
// repeated or taken back.
std::vector<OwnerIntent> abandoned_changes(const sys::Host& host, const OwnershipState& state);

}  // namespace gantry::ownership
