// SPDX-License-Identifier: Apache-2.0
// Which archive a request means, and the archive itself on the machine.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/driver_setup/install.hpp"
#include "install/driver_setup/install_effects.hpp"
#include "install/driver_setup/install_plan.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::driver_setup {

// Reads only, and nothing from the network: the digest of a download that is not pinned stays
// unknown. A local file is not read again if the record has its digest and it has not changed.
// Denied if a local file has another digest than the one that is asked for.
Result<PackageInfo> identify_package(const sys::Host& host, const preflight::DriverRequest& request,
                                     const std::optional<InstallRecord>& record);

// Downloads it if it is not a local file, and checks that its header says the same.
Result<PackageInfo> fetch_package(const sys::Host& host, const preflight::DriverRequest& request,
                                  const PackageInfo& package, InstallEffects& effects);

// sha256 of the file of --patch; "" without one.
Result<std::string> patch_digest_of(const sys::Host& host, const preflight::DriverRequest& request);

// Waits until NVIDIA's driver container has loaded its driver, and returns the version.
Result<std::string> await_container(const sys::Host& host, const SetupOptions& options,
                                    InstallEffects& effects);

}  // namespace gantry::driver_setup
