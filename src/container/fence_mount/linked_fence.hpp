// SPDX-License-Identifier: Apache-2.0
// The fence where nothing can be mounted: links at its place, and a directory for LD_LIBRARY_PATH.
// One command of the machine can have it so at a time, and a program that sets its own search path,
// or opens libcuda by its path, is not behind it: better than nothing, and said to be no more.
#pragma once

#include "base/core/result.hpp"
#include "container/fence_mount/fence_mounts.hpp"

#include <string>

namespace gantry::fence_mount {

class LinkedFence {
 public:
  // Busy while another command has it; what a dead one left is taken away. Denied for who may not
  // write there. `place`: FENCE_DIRECTORY, but for tests.
  static Result<LinkedFence> make(const FenceMounts& fence_mounts, const std::string& place);
  LinkedFence(LinkedFence&& other) noexcept : place_(std::move(other.place_)) {
    other.place_.clear();
  }
  LinkedFence& operator=(LinkedFence&&) = delete;
  ~LinkedFence();  // takes it away

  std::string libraries() const { return place_ + "/lib"; }

 private:
  explicit LinkedFence(std::string place) : place_(std::move(place)) {}
  std::string place_;
};

}  // namespace gantry::fence_mount
