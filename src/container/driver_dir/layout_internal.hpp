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

// "580.159.04" of "580.159.04-1f2e3d4c5b6a7988"; "" for any other name.
std::string_view version_in_name(std::string_view name);

// Whether the directory has its manifest, and that its own: it is written last.
Status check_complete(const sys::Host& host, std::string_view name);

// A file of the driver, opened, so that what was checked is what is linked.
struct SourceFile {
  const model::DriverFile* file = nullptr;
  sys::UniqueFd fd;
  struct stat status {};
};

struct SourceFiles {
  std::vector<SourceFile> files;  // libraries, programs, configuration
  std::string name;               // VERSION-DIGEST of these files
};

// Denied, with its name, for a file that somebody other than root could change; NotFound for one
// that is gone since the inventory was made, and for a driver without libraries.
Result<SourceFiles> open_sources(const sys::Host& host, const model::Inventory& machine);

// How a file came to another place.
enum class LinkMethod : std::uint8_t { HardLink, Reflink, Copy };
std::string_view to_string(LinkMethod way);

enum class CopyPolicy : std::uint8_t { Allowed, Refused };

// `source` as `name` in a directory: a hard link, else a reflink, else a copy. Unsupported where
// only a copy would do and copies are refused.
Result<LinkMethod> put_file(const SourceFile& source, int directory, const std::string& name,
                            CopyPolicy copies);

// Takes over the SELinux label of the driver's own files; nothing where there is none.
void copy_label(int from, int to);

}  // namespace gantry::driver_dir
