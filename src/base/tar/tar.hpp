// SPDX-License-Identifier: Apache-2.0
// Writes a tar archive (POSIX ustar) of files in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::tar {

struct ArchiveFile {
  std::string name;  // relative: "gantry-report/doctor.txt"; a directory ends in "/"
  std::string content = {};
  std::uint32_t mode = 0644;
  bool operator==(const ArchiveFile&) const = default;
};

// Everything belongs to root. A name that is too long for the format is cut at its beginning.
std::string to_tar(const std::vector<ArchiveFile>& files, std::int64_t modified_unix_s);

}  // namespace gantry::tar
