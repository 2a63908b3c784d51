// SPDX-License-Identifier: Apache-2.0
// A .run file: a shell script, then a tar archive that gzip has packed. The script's second and
// third lines are checksums of everything from the fourth line on.
#pragma once

#include "base/core/result.hpp"
#include "base/tar/tar.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

// As cksum prints it.
std::uint32_t posix_checksum(std::string_view bytes);
// In lower case.
std::string md5_of(std::string_view bytes);
// The same bytes give the same result: there is no time and no name in it.
std::string gzip(std::string_view bytes);

// `script` is sim/package/files/run-header.sh. All files have the time 0.
std::string run_archive(std::string script, const std::vector<tar::ArchiveFile>& files);

}  // namespace gantry::sim
