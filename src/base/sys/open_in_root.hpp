// SPDX-License-Identifier: Apache-2.0
// Opening below a directory as if that directory were "/": no symlink, no ".." and no rename while
// we look leads out of it. By openat2; where the kernel or a seccomp profile has none, by a walk of
// one component at a time.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::sys {

// Always O_CLOEXEC; magic links of procfs are not followed. `shown`: the path for error messages.
// Makes no files: O_CREAT is for the directory descriptor that comes back from here.
Result<UniqueFd> open_in_root(int root, std::string_view path, int flags, std::string_view shown);

// "/proc/thread-self/fd/N", for the calls that know no descriptors. Denied when /proc is not procfs
// or something is mounted over that place.
Result<std::string> descriptor_path(int fd);

// The mount that a descriptor is on: the first number of its line in mountinfo.
Result<std::uint64_t> mount_id(int fd);

// Exactly the file of an O_PATH descriptor, whatever its name points at by now.
Result<UniqueFd> reopen(int fd, int flags);

}  // namespace gantry::sys
