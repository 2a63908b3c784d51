// SPDX-License-Identifier: Apache-2.0
// Writes a tar archive (POSIX ustar) of texts in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::doctor {

struct ArchiveFile {
  std::string name;  // relative: "gantry-report/doctor.txt"
  std::string content;
  bool operator==(const ArchiveFile&) const = default;
};

// Files have mode 0644 and belong to root. A name that is too long for the format is cut at its
// beginning.
std::string to_tar(const std::vector<ArchiveFile>& files, std::int64_t modified_unix_s);

}  // namespace gantry::doctor
