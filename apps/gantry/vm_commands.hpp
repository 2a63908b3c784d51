// SPDX-License-Identifier: Apache-2.0
// The commands of `gantry vm`.
#pragma once

#include "gantry/command.hpp"

namespace gantry::cli {

void add_vm_config(CLI::App& vm, Context& context, Action& chosen);
void add_vm_check(CLI::App& vm, Context& context, Action& chosen);

}  // namespace gantry::cli
