// SPDX-License-Identifier: Apache-2.0
// The variables of Google's nvidia-driver-installer, with Google's defaults, and two of our own: a
// digest for the download, or the consent to do without one.
#pragma once

#include "base/core/result.hpp"
#include "install/preflight/request.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace gantry::google_installer {

struct Environment {
  std::string version;              // NVIDIA_DRIVER_VERSION
  std::string url;                  // NVIDIA_DRIVER_DOWNLOAD_URL
  std::string host_directory;       // NVIDIA_INSTALL_DIR_HOST: the driver's, on the machine
  std::string container_directory;  // NVIDIA_INSTALL_DIR_CONTAINER: the same, mounted in the pod
  std::string root;                 // ROOT_MOUNT_DIR: the machine
  std::string kernel;               // KERNEL_VERSION; "": not given
  bool overwrite = false;           // NVIDIA_INSTALLER_OVERWRITE
  std::string sha256;               // NVIDIA_DRIVER_SHA256
  bool trust_download_without_digest = false;  // NVIDIA_DRIVER_TRUST_DOWNLOAD_WITHOUT_DIGEST
  bool operator==(const Environment&) const = default;

  // As the pod sees it, for the log.
  std::string cache_file() const { return container_directory + "/.cache"; }
};

// `variable` returns "" for one that is not set; as in the shell's ${NAME:-DEFAULT}, an empty one
// counts as not set. Invalid, with the name of the variable, for a value that cannot be meant.
Result<Environment> read_environment(const std::function<std::string(const char* name)>& variable);

// The name that an archive has in the directory: the last part of the URL. "" without a URL.
std::string archive_name(const Environment& environment);

// Fills what the request leaves open. A file:// URL becomes a path on the machine: Invalid if the
// machine does not have it, because the pod does not show where it is.
Status complete(preflight::DriverRequest& request, const Environment& environment);

}  // namespace gantry::google_installer
