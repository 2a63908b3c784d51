// SPDX-License-Identifier: Apache-2.0
// The fence where nothing can be mounted: links at its place, and a directory for LD_LIBRARY_PATH.
// One command of the machine can have it so at a time, and a program that sets its own search path,
// or opens libcuda by its path, is not behind it: better than nothing, and said to be no more.
#pragma once

#include "base/core/result.hpp"
#include "container/fence_mount/enclosure.hpp"

#include <string>

namespace gantry::fence_mount {

class InPlace {
 public:
  // Busy while another command has it; what a dead one left is taken away. Denied for who may not
  // write there. `place`: FENCE_DIRECTORY, but for tests.
  static Result<InPlace> make(const Enclosure& enclosure, const std::string& place);
  InPlace(InPlace&& other) noexcept : place_(std::move(other.place_)) { other.place_.clear(); }
  InPlace& operator=(InPlace&&) = delete;
  ~InPlace();  // takes it away

  std::string libraries() const { return place_ + "/lib"; }

 private:
  explicit InPlace(std::string place) : place_(std::move(place)) {}
  std::string place_;
};

}  // namespace gantry::fence_mount
