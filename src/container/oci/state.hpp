// SPDX-License-Identifier: Apache-2.0
// The state of a container, which OCI runtimes pass to hooks on stdin.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::oci {

constexpr std::size_t kMaxStateBytes = std::size_t{1} << 20;

struct State {
  std::string id;
  std::string status;
  std::uint64_t pid = 0;
  std::string bundle;  // old runtimes call it bundlePath
  std::string root;    // set by crun only
  bool operator==(const State&) const = default;
};

// Corrupt if the text is not a state; Invalid if it does not name a bundle.
Result<State> parse_state(std::string_view text);

// The path of the container's root file system: `root`, or "rootfs" if it is empty; a relative path
// is inside the bundle.
std::string root_path(std::string_view bundle, std::string_view root);

}  // namespace gantry::oci
