// SPDX-License-Identifier: Apache-2.0
// Says that a living process changes the owner of one GPU. The kernel releases the lock when the
// process ends, in whatever way.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "gpu/model/pci_address.hpp"

namespace gantry::ownership {

inline constexpr std::string_view kChangeLocks = "/run/gantry/owner-changes";

class ChangeLock {
 public:
  // Never waits. Busy, with the change and since when, while another process has it.
  static Result<ChangeLock> take(const sys::Host& host, const model::PciAddress& gpu);
  // Whether a process has it. Does not disturb that process.
  static bool is_taken(const sys::Host& host, const model::PciAddress& gpu);

 private:
  explicit ChangeLock(sys::UniqueFd file) : file_(std::move(file)) {}
  sys::UniqueFd file_;
};

}  // namespace gantry::ownership
