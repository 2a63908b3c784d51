// SPDX-License-Identifier: Apache-2.0
// gantry vm: the configuration of virtual machines with GPUs.
#include "gantry/commands.hpp"
#include "gantry/vm_commands.hpp"

#include <CLI/CLI.hpp>

namespace gantry::cli {

void add_vm(CLI::App& app, Context& context, Action& chosen) {
  auto* vm =
      app.add_subcommand("vm", "Write and check the configuration of virtual machines with GPUs");
  vm->require_subcommand(1);
  add_examples(*vm,
               "  gantry vm config --for libvirt 0 1 > guest.xml\n"
               "  gantry vm check guest.xml\n");
  add_vm_config(*vm, context, chosen);
  add_vm_check(*vm, context, chosen);
}

}  // namespace gantry::cli
