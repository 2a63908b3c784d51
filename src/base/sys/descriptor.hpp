// SPDX-License-Identifier: Apache-2.0
// Reads the type and content of an open descriptor, with limits. `shown` is the path for error
// messages.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sys {

enum class FileKind : std::uint8_t {
  Regular,
  Directory,
  Symlink,
  CharDevice,
  BlockDevice,
  Socket,
  Fifo
};

struct FileInfo {
  FileKind kind = FileKind::Regular;
  std::uint32_t mode = 0;  // permission bits, 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint32_t major = 0;  // devices only
  std::uint32_t minor = 0;
  bool operator==(const FileInfo&) const = default;
};

Result<FileInfo> file_info(int fd, std::string_view shown);

// Both are open on one file. False if one of them cannot be examined.
bool same_file(int a, int b);

// The descriptor must be open with O_PATH | O_NOFOLLOW.
Result<std::string> read_link(int fd, std::string_view shown);

// Reads a regular file from the current offset to its end. Corrupt if that is more than `limit`
// bytes, Invalid if it is not a regular file.
Result<std::string> read_regular(int fd, std::size_t limit, std::string_view shown);

Status write_all(int fd, std::string_view content, std::string_view shown);

// Names without "." and "..", sorted; more than `limit` is Corrupt.
Result<std::vector<std::string>> list_directory(UniqueFd directory, std::size_t limit,
                                                std::string_view shown);

// The highest number that a descriptor of this process can have.
unsigned highest_descriptor();

// Closes all descriptors but these, which are in ascending order. It makes system calls only, so
// that it can be called after fork(). `highest` counts where the kernel has no close_range().
void close_all_but(std::span<const int> kept, unsigned highest);

}  // namespace gantry::sys
