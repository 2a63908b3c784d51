// SPDX-License-Identifier: Apache-2.0
// The state of a container, which OCI runtimes give to hooks on stdin.
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
  std::string root;    // crun alone; "" elsewhere
  bool operator==(const State&) const = default;
};

// Corrupt for what is no state; Invalid when it names no bundle.
Result<State> parse_state(std::string_view text);

// The container's root file system: `root` where given, else root.path of config.json, relative to
// the bundle.
std::string root_path(std::string_view bundle, std::string_view root);

}  // namespace gantry::oci
