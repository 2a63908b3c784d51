// SPDX-License-Identifier: Apache-2.0
// The parts of `gantry vfio`.
#pragma once

#include "gantry/command.hpp"
#include "vm/vfio/bind.hpp"
#include "vm/vfio/machine_state.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::cli {

void add_vfio_list(CLI::App& vfio, Context& context, Action& chosen);
void add_vfio_plan(CLI::App& vfio, Context& context, Action& chosen);
void add_vfio_bind(CLI::App& vfio, Context& context, Action& chosen);
void add_vfio_release(CLI::App& vfio, Context& context, Action& chosen);
void add_vfio_status(CLI::App& vfio, Context& context, Action& chosen);
void add_vfio_recover(CLI::App& vfio, Context& context, Action& chosen);
void add_vfio_restore(CLI::App& vfio, Context& context, Action& chosen);

// The positional argument GPU...
void add_gpu_names(CLI::App& command, std::vector<std::string>& names);

// What changes the machine: the kernel, or the tree of a simulated machine. Denied for any other
// tree of files: nothing would answer the writes. The host must outlive the result.
Result<vfio::Effects> vfio_effects(const sys::Host& host);

// The GPUs that the words name, each once.
Result<std::vector<model::PciAddress>> find_gpus(const vfio::MachineState& state,
                                                 const std::vector<std::string>& names);

// A GPU may be named twice, by address and by index.
void add_address_once(std::vector<model::PciAddress>& addresses, const model::PciAddress& address);

std::string join_addresses(const std::vector<model::PciAddress>& addresses);

// The plan with the remedies for this machine: commands of gantry name its root.
vfio::Plan for_machine(vfio::Plan plan, const sys::Host& host);

// Why Gantry writes driver_override and never new_id, for people.
std::string_view why_driver_override();

// One line per finding, indented, with its remedy for this machine.
std::string findings_text(const vfio::Plan& plan, const sys::Host& host);

}  // namespace gantry::cli
