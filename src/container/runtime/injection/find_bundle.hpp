// SPDX-License-Identifier: Apache-2.0
// Finds the directory of a container's config.json by the container's name or id, in the state
// directories of runc, crun, containerd, docker, podman and CRI-O.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>
#include <string_view>

namespace gantry::runtime {

struct FoundBundle {
  std::string id;      // "" if the bundle was named by its path
  std::string bundle;  // directory of config.json
  bool operator==(const FoundBundle&) const = default;
};

// `name`: a bundle's directory, its config.json, a container's id (a unique prefix is enough) or
// its name in docker or podman. `host` is where engines keep their state: "/" except in tests. Does
// not search directories with more than some thousand entries. NotFound, with the searched
// directories, if no container matches; Invalid if several match.
Result<FoundBundle> find_bundle(const sys::Host& host, std::string_view name);

}  // namespace gantry::runtime
