// SPDX-License-Identifier: Apache-2.0
// /var/lib/gantry/ledger: no GPU in two owners' hands, whatever dies when. For GPUs of the plugin
// the kubelet is the truth about who holds what: an Allocate is never refused because somebody had
// the device before (frees are lazy, init containers hand theirs on); refused is only what another
// owner has. Every change is on disk when its call returns.
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

// What is known, outside the ledger, about a GPU that is to change hands.
struct GpuUsage {
  bool withdrawn = false;            // the kubelet was told that it is gone, and has taken note
  std::vector<std::string> holders;  // pods that have it, by podresources or checkpoint
  std::vector<std::uint32_t> pids;   // processes on it
};

class OwnershipStore {
 public:
  // Busy while another process has it; Corrupt, with what helps, when there is a file and nothing
  // in it can be believed: whoever owns the GPUs must not be guessed. Of a damaged file the last
  // whole record counts; it is repaired, and kept beside as ledger.damaged.
  static Result<OwnershipStore> open(const sys::Host& host, std::string_view path = kOwnershipPath);

  // What it says now, for somebody who only looks: no lock, no repair. Empty where there is none.
  static Result<OwnershipState> peek(const sys::Host& host, std::string_view path = kOwnershipPath);

  const OwnershipState& state() const { return state_; }
  const std::vector<std::string>& notes() const { return notes_; }  // what was repaired

  // For a GPU that is not in here yet; one that is stays as it is.
  Status adopt(const model::GpuUuid& gpu, Owner owner, model::AllocationMode use);

  // Another owner or another use. Busy, with who and what helps, unless it is withdrawn, nobody
  // holds it and no process is on it.
  Status change(const model::GpuUuid& gpu, Owner owner, model::AllocationMode use,
                const GpuUsage& evidence);

  // Whether `owner` may give these to somebody: Denied when one is another's. A GPU that is not in
  // here is nobody's and may be given.
  Status check_may_allocate(Owner owner, std::span<const model::GpuUuid> gpus) const;

  // A holder that the kubelet does not know. The same claim again is no change; Busy when another
  // one has the GPU or the instance, Denied when the GPU is another owner's.
  Status claim(const Claim& claim);
  Status release(std::string_view id);  // all of this claim's devices; one that is not here is fine

  // Of a GPU that is gone for good. Busy while it is held.
  Status forget(const model::GpuUuid& gpu);

 private:
  OwnershipStore(std::string path, sys::UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  Status load(const sys::Host& host, std::string_view inside);
  Status write(OwnershipState next);  // the next state, on disk, then in memory
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
