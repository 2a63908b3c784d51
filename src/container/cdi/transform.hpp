// SPDX-License-Identifier: Apache-2.0
// A specification for another place or another engine.
#pragma once

#include "base/core/result.hpp"
#include "container/cdi/spec.hpp"
#include "container/cdi/version.hpp"

#include <string>
#include <vector>

namespace gantry::cdi {

enum class PathSide : std::uint8_t { Host, Container };

struct RootChange {
  std::string from;
  std::string to;
  PathSide side = PathSide::Host;
};

// Replaces the prefix `from` of paths by `to`, at component boundaries: /usr matches /usr and
// /usr/lib, not /usrlocal. Host: device nodes' hostPath (filled from path first), mounts' hostPath,
// hooks' path and the arguments of hooks that run outside. Container: device nodes' path, mounts'
// containerPath, the arguments of hooks that run inside. Both sides of an argument a::b.
void transform_root(Spec& spec, const RootChange& change);

struct DowngradedSpec {
  Spec spec;
  std::vector<std::string> words;  // what was dropped or renamed, one sentence each
};

// The specification in an older version. What an engine can do without is dropped with a word;
// what would make another container of it is an error:
//   additionalGids    dropped: a process that is not root may lack the group of a node
//   annotations       dropped, they reach no container
//   a mount's type    dropped, where it is bind, which is meant without it
//   intelRdt, netDevices, intelRdt's newer keys   dropped
//   a device name that starts with a digit        before 0.5: gpu0 for 0 (the class in front)
//   a node's hostPath that differs from its path  before 0.5: an error, the node would be another
//   a dot in the class                            before 0.6: an error, it is the kind's name
Result<DowngradedSpec> downgrade(const Spec& spec, Version target);

}  // namespace gantry::cdi
