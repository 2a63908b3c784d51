// SPDX-License-Identifier: Apache-2.0
// An image before it runs: its configuration and its files. Nothing is unpacked to disk, nothing of
// it is executed, and every size and number in it is bounded (read_budget.hpp).
#pragma once

#include "base/core/result.hpp"
#include "container/image/read_budget.hpp"
#include "container/image/root_files.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::image {

struct ImageConfig {
  std::string name;                // "train:1"; "" if it has none
  std::string architecture;        // "amd64"; "" if it is not known
  std::string os;                  // "linux"; "" if it is not known
  std::vector<std::string> env;    // NAME=value
  std::vector<std::string> notes;  // what was not looked at, one sentence each
};

struct Image {
  std::string form;  // "directory", "docker archive", "OCI layout"
  ImageConfig config;
  bool has_config = false;  // a directory of files has none
  std::shared_ptr<const RootFiles> files;
};

// The name of this machine's architecture in images: "amd64".
std::string_view own_architecture();

// `path` is a directory with the image's files, an OCI layout, or an archive of `docker save`,
// `podman save` or an OCI layout, plain or packed by gzip; "-" is an archive on standard input.
// Invalid for anything else, Corrupt for damage, TooLarge beyond a limit, Unsupported for
// layers that are not packed by gzip.
Result<Image> open_image(const std::string& path, const ReadLimits& limits = {});

// An archive that is open; the form that open_image() uses and fuzz targets call.
Result<Image> read_archive(int fd, const ReadLimits& limits = {});

}  // namespace gantry::image
