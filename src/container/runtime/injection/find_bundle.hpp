// SPDX-License-Identifier: Apache-2.0
// A container by what people call it: the directory of its config.json, in the places where runc,
// crun, containerd, docker, podman and CRI-O keep theirs.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>
#include <string_view>

namespace gantry::runtime {

struct FoundBundle {
  std::string id;      // "" for a bundle that was named by its path
  std::string bundle;  // directory of config.json
  bool operator==(const FoundBundle&) const = default;
};

// `name`: a bundle's directory, its config.json, a container's id (the first characters will do
// where they are unique) or its name in docker or podman. `host` is where engines keep their state:
// "/" outside tests. Bounded: no directory of more than some thousand entries is searched. NotFound
// with the places that were looked at, Invalid when several containers match.
Result<FoundBundle> find_bundle(const sys::Host& host, std::string_view name);

}  // namespace gantry::runtime
