// SPDX-License-Identifier: Apache-2.0
// The fence without mounts: links in its directory, and a directory for LD_LIBRARY_PATH. Only one
// command of the machine can use it at a time. A program that sets its own search path or opens
// libcuda by its path avoids it; the user is told so.
#pragma once

#include "base/core/result.hpp"
#include "container/fence_mount/fence_mounts.hpp"

#include <string>

namespace gantry::fence_mount {

class LinkedFence {
 public:
  // Busy if another command uses it; files of a command that died are removed. Denied if this user
  // may not write there. `place` is FENCE_DIRECTORY except in tests.
  static Result<LinkedFence> make(const FenceMounts& fence_mounts, const std::string& place);
  LinkedFence(LinkedFence&& other) noexcept : place_(std::move(other.place_)) {
    other.place_.clear();
  }
  LinkedFence& operator=(LinkedFence&&) = delete;
  ~LinkedFence();  // removes the links

  std::string libraries() const { return place_ + "/lib"; }

 private:
  explicit LinkedFence(std::string place) : place_(std::move(place)) {}
  std::string place_;
};

}  // namespace gantry::fence_mount
