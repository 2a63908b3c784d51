// SPDX-License-Identifier: Apache-2.0
// Where a path of a container leads once its symlinks are followed, as a container runtime computes
// it before it creates a mount point: a part that does not exist counts as a directory.
#pragma once

#include "base/core/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::rootfs {

// The target of the symlink at a path that has no symlinks before its last part; nullopt for
// anything else, also if nothing is there.
using LinkReader = std::function<std::optional<std::string>(const std::string& path)>;

// An absolute path without symlinks, "." and "..". Never leads above "/". sys_errno() ELOOP after
// too many symlinks, ENAMETOOLONG if they lead to a path that no file can have.
Result<std::string> follow_links(std::string_view path, const LinkReader& link_at);

}  // namespace gantry::rootfs
