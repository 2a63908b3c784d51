// SPDX-License-Identifier: Apache-2.0
// Runs the commands of a hooks file of mig-parted.
#pragma once

#include "gantry/command.hpp"
#include "gpu/mig/hooks_file.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::cli {

// The commands run as the user of this process, so only that user and root may be able to change
// the file: Denied if another one can. "" is an empty file.
Result<mig::MigHooks> read_mig_hooks(const std::string& file);

// One after the other; the first failure ends it. `environment` wins over that of a hook. Their
// output is shown if `show` is true, and in the error of one that fails.
Status run_mig_hooks(const std::vector<mig::HookCommand>& hooks, std::string_view name,
                     const std::map<std::string, std::string>& environment, bool show,
                     const Context& context);

}  // namespace gantry::cli
