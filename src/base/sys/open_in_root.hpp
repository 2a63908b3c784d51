// SPDX-License-Identifier: Apache-2.0
// Opens files below a directory as if that directory were "/": no symlink, no ".." and no
// concurrent rename can lead out of it. Uses openat2; if the kernel or a seccomp profile does not
// allow it, walks one path component at a time.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::sys {

// Always O_CLOEXEC; magic links of procfs are not followed. `shown`: the path for error messages.
// It creates no files: open the directory here and use O_CREAT below that descriptor.
Result<UniqueFd> open_in_root(int root, std::string_view path, int flags, std::string_view shown);

// The path without its leading slashes; "." for the root itself.
std::string_view relative_to_root(std::string_view path);

// "/proc/thread-self/fd/N", for calls that only take paths. Denied if /proc is not procfs or
// something is mounted there.
Result<std::string> descriptor_path(int fd);

// The mount id of a descriptor: the first number of its line in mountinfo.
Result<std::uint64_t> mount_id(int fd);

// Opens the file of an O_PATH descriptor, even if its name now points to another file.
Result<UniqueFd> reopen(int fd, int flags);

}  // namespace gantry::sys
