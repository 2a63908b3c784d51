// SPDX-License-Identifier: Apache-2.0
// gantry cdi: what container engines read about this machine's devices.
#include "gantry/cdi.hpp"

#include "gantry/commands.hpp"
#include "gantry/nvidia_ctk.hpp"

#include <CLI/CLI.hpp>

namespace gantry::cli {

void add_cdi(CLI::App& app, Context& /*context*/, Action& /*chosen*/) {
  auto* cdi = app.add_subcommand("cdi", "What container engines read about this machine's devices");
  cdi->require_subcommand(1);
}

void add_ctk_cdi(CLI::App& app, Context& /*context*/, Action& /*chosen*/) {
  auto* cdi = app.add_subcommand("cdi", "Specifications of the Container Device Interface");
  cdi->require_subcommand(1);
}

}  // namespace gantry::cli
