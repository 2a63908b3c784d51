// SPDX-License-Identifier: Apache-2.0
// What the distribution's package tool knows of packages.
#pragma once

#include "install/driver_setup/install_effects.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

using PackageVersions = std::map<std::string, std::string, std::less<>>;  // by name

// Whether the command is one of apt's, as "env DEBIAN_FRONTEND=noninteractive apt-get ...".
bool is_apt(const std::vector<std::string>& argv);

// A command of a package tool. zypper has exit statuses that tell of a success.
ProgramCall package_command(const std::vector<std::string>& argv);

// All packages that are installed.
Result<PackageVersions> read_packages(InstallEffects& effects, bool apt);

// Packages that apt installed for these and that nothing needs without them. Others that nothing
// needs are not among them: they were so before.
Result<std::vector<std::string>> came_with(InstallEffects& effects,
                                           const std::vector<std::string>& packages);

}  // namespace gantry::driver_setup
