// SPDX-License-Identifier: Apache-2.0
// An agent that starts beside an earlier one reads the owners of the GPUs from the ledger, but
// cannot write it yet. While it has this lock no change of an owner begins, so what it read stays
// true. The kernel releases the lock when the process ends, in whatever way.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"

#include <string>
#include <string_view>

namespace gantry::ownership {

class StartLock {
 public:
  // Several agents may have it at the same time. Waits for the milliseconds in which a change that
  // has begun is written down.
  static Result<StartLock> take(const sys::Host& host);

 private:
  explicit StartLock(sys::UniqueFd file) : file_(std::move(file)) {}
  sys::UniqueFd file_;
};

// Held while an intent is written. Busy while an agent has a StartLock.
class BeginLock {
 public:
  // `ledger`: its path as the kernel knows it.
  static Result<BeginLock> take(const std::string& ledger);

 private:
  explicit BeginLock(sys::UniqueFd file) : file_(std::move(file)) {}
  sys::UniqueFd file_;
};

}  // namespace gantry::ownership
