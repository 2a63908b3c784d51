// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>

namespace gantry::driver_dir {

// The directory of the prepared drivers, created if missing, with the lock that its writers take.
// The kernel releases the lock when its owner dies.
class DirectoryLock {
 public:
  static Result<DirectoryLock> take(const sys::Host& host, std::chrono::milliseconds deadline);
  int directory() const { return directory_.get(); }

 private:
  DirectoryLock(sys::UniqueFd directory, sys::UniqueFd lock)
      : directory_(std::move(directory)), lock_(std::move(lock)) {}
  sys::UniqueFd directory_;
  sys::UniqueFd lock_;
};

}  // namespace gantry::driver_dir
