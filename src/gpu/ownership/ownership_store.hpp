// SPDX-License-Identifier: Apache-2.0
// /var/lib/gantry/ledger: guarantees that no GPU has two owners, even after a crash at any moment.
// For GPUs of the device plugin, only the kubelet decides which pod holds a device. An Allocate is
// never refused because another pod had the device before (the kubelet frees devices late, and init
// containers pass theirs on); it is refused only if another owner has the GPU. Every change is on
// disk when its call returns.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "gpu/ownership/ownership_state.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::ownership {

inline constexpr std::string_view kOwnershipPath = "/var/lib/gantry/ledger";

// Facts from outside the ledger about a GPU whose owner is to change.
struct GpuUsage {
  bool withdrawn = false;            // the kubelet was told that it is gone, and has accepted it
  std::vector<std::string> holders;  // pods that have it, by podresources or checkpoint
  std::vector<std::uint32_t> pids;   // processes on it
};

// "`gantry vfio bind 0000:3b:00.0` (process 4711, since 2026-11-18 05:30:00 UTC)".
std::string describe(const OwnerIntent& intent);

class OwnershipStore {
 public:
  // Busy while another process has it open. Corrupt, with a remedy, if the file has no valid
  // record: the owners of the GPUs must not be guessed. Unsupported if a later version wrote it. If
  // the file is damaged, the last complete record is used; the file is repaired and the old one is
  // saved as ledger.damaged. A file of version 1 is rewritten and saved as ledger.version-1; its
  // UUIDs get their addresses from the driver or, later, from adopt().
  static Result<OwnershipStore> open(const sys::Host& host, std::string_view path = kOwnershipPath);

  // Reads the current state without a lock and without repair. Empty if there is no file. Fails
  // as open() does.
  static Result<OwnershipState> peek(const sys::Host& host, std::string_view path = kOwnershipPath);

  const OwnershipState& state() const { return state_; }
  const std::vector<std::string>& notes() const { return notes_; }  // what was repaired

  // Adds a GPU. If it is already in the ledger, only its UUID is updated; see identify().
  Status adopt(const model::PciAddress& gpu, const model::GpuUuid& uuid, Owner owner,
               model::AllocationMode use);

  // Changes the owner or the use. Busy, with the holder and a remedy, unless the GPU is withdrawn,
  // no pod or claim holds it and no process uses it. For changes that need no act on the machine;
  // for others see owner_change.hpp.
  Status change(const model::PciAddress& gpu, Owner owner, model::AllocationMode use,
                const GpuUsage& evidence);

  // Writes down that a change begins, under the same conditions. The caller has the ChangeLock of
  // the GPU, so the process that wrote an earlier intent has ended. Then the change must repeat
  // that one or lead back to the present owner; Busy otherwise, and while an agent starts
  // (start_lock.hpp).
  Status begin(const OwnerIntent& intent, const GpuUsage& evidence);
  // Writes the new owner; cancel() keeps the present one. Both remove the intent. NotFound if the
  // ledger has another intent for this GPU, or none.
  Status finish(const OwnerIntent& intent);
  Status cancel(const OwnerIntent& intent);
  // For a change that did nothing: cancel(), but the intent stays if it replaced one that was not
  // finished, because the GPU is still as that one left it.
  Status drop(const OwnerIntent& intent);

  // Records a holder that the kubelet does not know. Repeating a claim changes nothing. Busy if
  // another claim has the GPU or the part, Denied if the GPU has another owner.
  Status claim(const Claim& claim);
  Status release(
      std::string_view id);  // all devices of this claim; succeeds if there is no such claim

  // Removes a GPU that no longer exists. Busy while it is held.
  Status forget(const model::PciAddress& gpu);

 private:
  OwnershipStore(std::string path, sys::UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  Status load(const sys::Host& host, std::string_view inside);
  void place_former_gpus(const sys::Host& host);
  // `kept`: as in OwnerIntent.
  Status check_change(const GpuOwnership& entry, const GpuUsage& evidence,
                      std::span<const std::string> kept = {}) const;
  Status write(OwnershipState next);  // stores the next state on disk, then in memory
  Status append(const std::string& record);
  Status rewrite(const std::string& record);

  std::string path_;
  sys::UniqueFd lock_;
  sys::UniqueFd file_;
  std::uint64_t size_ = 0;
  OwnershipState state_;
  std::vector<std::string> notes_;
};

}  // namespace gantry::ownership
