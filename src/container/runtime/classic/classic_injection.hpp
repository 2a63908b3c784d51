// SPDX-License-Identifier: Apache-2.0
// Applies edits the classic way: mounts into a container from outside while its runtime waits. The
// sources are checked on the host first; a child process then mounts them in the container's mount
// namespace.
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

// A file of the host and its path in the container. The inode identifies the file: the path must
// still have the same inode when it is mounted.
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
  std::vector<DeviceRule> rules;         // for the nodes, with the numbers of the nodes themselves
  std::vector<SourceBind> loader_binds;  // used only if the image's loader cache cannot be changed
  std::vector<model::LibraryEdit> libraries;
  std::vector<model::FileEdit> files;
  loader::HostVersions versions;    // both "": no forward compatibility
  const sys::Host* host = nullptr;  // the container sees this host's driver parameters
};

enum class NodeBinds : std::uint8_t { Make, Leave };

// Checks every source. Denied for a file that users other than root can change; NotFound for a
// missing file; Invalid for a node that is not a character device.
Result<ClassicInjection> check_sources(const model::ContainerEdits& edits, NodeBinds nodes);
Result<std::vector<SourceBind>> check_mount_sources(const std::vector<model::MountEdit>& mounts);

// Enters the container in a child process, mounts and writes. Returns notes for the log. On an
// error, the caller must fail the container's start; the runtime then discards the mounts.
Result<std::vector<std::string>> inject_into(const ContainerProcess& process,
                                             const ClassicInjection& work);

}  // namespace gantry::runtime
