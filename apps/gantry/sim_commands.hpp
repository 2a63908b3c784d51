// SPDX-License-Identifier: Apache-2.0
// What the files behind `gantry sim` share.
#pragma once

#include "gantry/command.hpp"

#include <string>
#include <string_view>

namespace gantry::cli {

void add_root(CLI::App& command, Context& context);                    // --root, required
void add_sim_inject(CLI::App& sim, Context& context, Action& chosen);  // inject and state
std::string json_text(std::string_view text);                          // quoted

}  // namespace gantry::cli
