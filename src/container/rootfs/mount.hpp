// SPDX-License-Identifier: Apache-2.0
// Mounts into a container's root, from descriptor to descriptor. The source is always a file of the
// host that the caller opened and checked; the target is resolved inside the root. Must run in the
// container's mount namespace (as createContainer hooks do) with CAP_SYS_ADMIN there.
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
  // Mounts on which nothing may be mounted (shared_mounts()); nullptr: no restriction.
  const std::vector<std::uint64_t>* avoid = nullptr;
};

// A detached copy of the mount at `source` (O_PATH is enough): nosuid, private, with the options.
// It can be created in one mount namespace and attached in another. Unsupported on kernels before
// 5.12; bind() works there, too.
Result<sys::UniqueFd> detached_copy(int source, const BindOptions& options);

// Attaches a detached mount over `target`, a descriptor from Root::open.
Status attach(int detached, int target);

// Mounts `source` over `path`, which is created as an empty file or directory if it is missing.
// Creates nothing in a volume, or below a mount in `avoid`.
Status bind(const Root& root, int source, std::string_view path, const BindOptions& options = {});

// Mounts a small read-only file with this content over the file at `path`, which must exist. The
// content is in memory, not on disk.
Status bind_content(const Root& root, std::string_view content, std::string_view path);

}  // namespace gantry::rootfs
