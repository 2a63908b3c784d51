// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <string>
#include <vector>

namespace gantry::keeper {

// Starts a program that goes on when we end: not our child, no terminal, no session, none of our
// descriptors; its standard error goes to the file `log`, which begins anew. NotFound where it
// cannot be executed.
Status start_detached(const std::vector<std::string>& argv, const std::string& log);

// The end of that file, for an error message.
std::string last_words(const std::string& log);

}  // namespace gantry::keeper
