// SPDX-License-Identifier: Apache-2.0
// The classic way of putting edits into a container: by mounting into it from outside while its
// runtime waits. Looked at on the host first, done in the container's own mounts afterwards, in a
// process of its own.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/rootfs/mount.hpp"
#include "container/runtime/classic/container_process.hpp"
#include "container/runtime/classic/device_program.hpp"
#include "gpu/loader/forward_compat.hpp"
#include "gpu/model/container_edits.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::runtime {

// A file of the host and its place in the container. The file is known by its inode: at the path
// there must be the very same one when it is mounted.
struct SourceBind {
  std::string source;
  std::string target;
  rootfs::BindOptions options;
  dev_t device = 0;
  ino_t inode = 0;
};

struct ClassicInjection {
  std::string rootfs;
  std::vector<SourceBind> binds;
  std::vector<DeviceRule> rules;         // of the nodes, read off the nodes themselves
  std::vector<SourceBind> loader_binds;  // only where the image's loader cache cannot be changed
  std::vector<model::LibraryEdit> libraries;
  std::vector<model::FileEdit> files;
  loader::HostVersions versions;    // both "": no forward compatibility
  const sys::Host* host = nullptr;  // whose driver's parameters the container sees
};

enum class NodeBinds : std::uint8_t { Make, Leave };

// Looks at every source. Denied for one that others than root could have changed; NotFound for one
// that is not there; Invalid for a node that is no character device.
Result<ClassicInjection> check_sources(const model::ContainerEdits& edits, NodeBinds nodes);
Result<std::vector<SourceBind>> check_mount_sources(const std::vector<model::MountEdit>& mounts);

// In a child: enters, mounts, writes, ends. Answers with what deserves a line in a log. When it
// fails, the caller fails the container's start, and the runtime throws its mounts away.
Result<std::vector<std::string>> inject_into(const ContainerProcess& process,
                                             const ClassicInjection& work);

}  // namespace gantry::runtime
