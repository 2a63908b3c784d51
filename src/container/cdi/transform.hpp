// SPDX-License-Identifier: Apache-2.0
// Changes a specification for another root directory or an older engine.
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

// Converts the specification to an older version. Drops optional fields and reports each; if the
// container would become a different one, returns an error:
//   additionalGids    dropped: a process that is not root may lack the group of a node
//   annotations       dropped: containers do not see them
//   a mount's type    dropped if it is bind, which is the default
//   intelRdt, netDevices, intelRdt's newer keys   dropped
//   a device name that starts with a digit        before 0.5: gpu0 for 0 (the class in front)
//   a node's hostPath that differs from its path  before 0.5: an error, another node would be used
//   a dot in the class                            before 0.6: an error, it is part of the name
Result<DowngradedSpec> downgrade(const Spec& spec, Version target);

}  // namespace gantry::cdi
