// SPDX-License-Identifier: Apache-2.0
// Installs a driver with the log of Google's nvidia-driver-installer, for scripts and people that
// wait for its lines: the same words in the same order, each when it is true. What is done is
// `gantry driver install`; Google's cache file is written for other programs and never trusted.
#pragma once

#include "install/driver_setup/install.hpp"
#include "install/google_installer/environment.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace gantry::google_installer {

// Gets whole lines, with their ends.
using PrintLines = std::function<void(std::string_view lines)>;

// Whether the cache file names this driver and the running kernel, and Gantry installed it. Prints
// the answer.
bool check_cached_version(const sys::Host& host, const preflight::DriverRequest& request,
                          const Environment& environment, const PrintLines& print);

// Uses an archive that is in the directory already, unless it shall be downloaded again.
void use_existing_archive(const sys::Host& host, const Environment& environment,
                          preflight::DriverRequest& request);

// Invalid if KERNEL_VERSION is not the running kernel: this name builds and loads.
Status check_kernel(const sys::Host& host, const Environment& environment);

// Installs the kernel's headers in the image, which has a package tool, as Google's script does; on
// failure the preflight says what is missing.
using FetchHeaders = std::function<Status(const std::string& kernel)>;

// For a pod whose image is in the tree `image`: if the machine and the image have no headers of the
// kernel, `apt-get` installs them in the image. Empty on the machine itself and without apt-get.
// `stop`: a descriptor that becomes readable to end it, or -1.
FetchHeaders headers_by_apt(const sys::Host& host, const sys::Host& image, int stop);

// The whole log, from the cache to the loader's cache. Fails as driver_setup::install does.
Result<driver_setup::SetupReport> install(const sys::Host& host, preflight::DriverRequest request,
                                          const Environment& environment,
                                          driver_setup::SetupOptions options,
                                          driver_setup::InstallEffects& effects,
                                          const PrintLines& print,
                                          const FetchHeaders& fetch_headers = {});

}  // namespace gantry::google_installer
