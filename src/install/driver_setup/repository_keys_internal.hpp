// SPDX-License-Identifier: Apache-2.0
// The keys that sign a vendor's repository: which ones are trusted because somebody named them, and
// those in rpm's own database.
#pragma once

#include "install/driver_package/distribution.hpp"
#include "install/driver_setup/setup_work_internal.hpp"

#include <map>
#include <string>

namespace gantry::driver_setup {

// Gets what the repository serves, and writes those of its keys to the step's file that the request
// names or the machine trusts already. Denied, with every fingerprint and the command that names
// it, if there is none: a key of the server that has the packages proves nothing.
Status place_repository_key(SetupWork& work, const driver_package::PackageStep& step);

// `rpm --import` of a file that place_repository_key() wrote. Notes in the target's removal, before
// it, which keys are new to the database. Does nothing if none is.
Status import_rpm_keys(SetupWork& work, const driver_package::PackageStep& step);

// Whether an earlier installation of ours made the file, or noted that its removal removes it.
bool is_own_package_file(const SetupWork& work, const std::string& path);
// Replaces such a file, or creates a new one. Exists, with what to do, for a file of somebody else.
Status write_package_file(SetupWork& work, const std::string& path, std::string_view content);

// Takes the key with this fingerprint out of rpm's database, if it is there.
Status remove_rpm_key(SetupWork& work, const std::string& fingerprint);

}  // namespace gantry::driver_setup
