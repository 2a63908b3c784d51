// SPDX-License-Identifier: Apache-2.0
// One line per command; main_program.cpp calls them all.
#pragma once

#include "gantry/command.hpp"

namespace gantry::cli {

void add_cdi(CLI::App& app, Context& context, Action& chosen);
void add_completion(CLI::App& app, Context& context, Action& chosen);
void add_config(CLI::App& app, Context& context, Action& chosen);
void add_doctor(CLI::App& app, Context& context, Action& chosen);
void add_driver(CLI::App& app, Context& context, Action& chosen);
void add_explain(CLI::App& app, Context& context, Action& chosen);
void add_gpu(CLI::App& app, Context& context, Action& chosen);
void add_info(CLI::App& app, Context& context, Action& chosen);
void add_inspect(CLI::App& app, Context& context, Action& chosen);
void add_list(CLI::App& app, Context& context, Action& chosen);
void add_man_page(CLI::App& app, Context& context, Action& chosen);
void add_mig_command(CLI::App& app, Context& context, Action& chosen);
void add_node(CLI::App& app, Context& context, Action& chosen);
void add_report(CLI::App& app, Context& context, Action& chosen);
void add_runtime(CLI::App& app, Context& context, Action& chosen);
void add_scheduler(CLI::App& app, Context& context, Action& chosen);
void add_share(CLI::App& app, Context& context, Action& chosen);
void add_sim(CLI::App& app, Context& context, Action& chosen);
void add_topo(CLI::App& app, Context& context, Action& chosen);
void add_vfio(CLI::App& app, Context& context, Action& chosen);
void add_vm(CLI::App& app, Context& context, Action& chosen);
void add_vgpu(CLI::App& app, Context& context, Action& chosen);
void add_why(CLI::App& app, Context& context, Action& chosen);

}  // namespace gantry::cli
