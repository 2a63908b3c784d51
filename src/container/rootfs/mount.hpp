// SPDX-License-Identifier: Apache-2.0
// Mounts into a container's root, from descriptor to descriptor. The source is always a file of the
// host that the caller opened and looked at; the target is resolved inside the root. Needs to run
// in the container's mount namespace (a createContainer hook does) with CAP_SYS_ADMIN there.
#pragma once

#include "container/rootfs/mount_table.hpp"
#include "container/rootfs/root.hpp"

#include <cstdint>
#include <vector>

namespace gantry::rootfs {

struct BindOptions {
  bool read_only = true;
  bool no_exec = false;
  bool devices = false;  // device nodes under it work
  // Mounts that nothing may be mounted on (shared_mounts()); nullptr: all will do.
  const std::vector<std::uint64_t>* avoid = nullptr;
};

// A copy of the mount at `source` (O_PATH will do) that is attached nowhere yet: nosuid, private,
// with the options. May be made in one mount namespace and attached in another. Unsupported on
// kernels before 5.12; bind() knows the way around.
Result<sys::UniqueFd> detached_copy(int source, const BindOptions& options);

// Attaches a detached mount over what `target` is: a descriptor from Root::open.
Status attach(int detached, int target);

// Mounts `source` over `path`, which is made (an empty file, or a directory) when nothing is there;
// nothing is made in a volume, nor on the way to a mount that is to be avoided.
Status bind(const Root& root, int source, std::string_view path, const BindOptions& options = {});

// Mounts a small read-only file with this content over the file at `path`, which must be there. The
// content lives in memory of its own, on no disk.
Status bind_content(const Root& root, std::string_view content, std::string_view path);

}  // namespace gantry::rootfs
