// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_dir {

// "580.159.04" for "580.159.04-1f2e3d4c5b6a7988"; "" for any other name.
std::string_view version_in_name(std::string_view name);

// Succeeds if the directory has its own manifest, which is written last.
Status check_complete(const sys::Host& host, std::string_view name);

// An open file of the driver, so that the file that was checked is the file that is linked.
struct SourceFile {
  const model::DriverFile* file = nullptr;
  sys::UniqueFd fd;
  struct stat status {};
};

struct SourceFiles {
  std::vector<SourceFile> files;  // libraries, programs, configuration
  std::string name;               // VERSION-DIGEST of these files
};

// Denied, with its name, for a file that users other than root can change; NotFound for a file that
// was removed after the inventory was made, and for a driver without libraries.
Result<SourceFiles> open_sources(const sys::Host& host, const model::Inventory& machine);

// How a file was put into the directory.
enum class LinkMethod : std::uint8_t { HardLink, Reflink, Copy };
std::string_view to_string(LinkMethod way);

enum class CopyPolicy : std::uint8_t { Allowed, Refused };

// Puts `source` into a directory as `name`: a hard link, else a reflink, else a copy. Unsupported
// if only a copy is possible and copies are not allowed.
Result<LinkMethod> put_file(const SourceFile& source, int directory, const std::string& name,
                            CopyPolicy copies);

// Copies the SELinux label of the driver's own files, if there is one.
void copy_label(int from, int to);

}  // namespace gantry::driver_dir
