// SPDX-License-Identifier: Apache-2.0
// `gantry` called as nvidia-ctk: the commands that scripts and systemd units use, with NVIDIA's
// flags and environment variables, implemented by Gantry's commands. Each command has one line here
// and one in the table of nvidia_ctk.cpp.
#pragma once

#include "gantry/command.hpp"

namespace gantry::cli {

int nvidia_ctk(int argc, char** argv, std::FILE* out, std::FILE* err);

void add_ctk_cdi(CLI::App& app, Context& context, Action& chosen);
void add_ctk_config(CLI::App& app, Context& context, Action& chosen);
void add_ctk_runtime(CLI::App& app, Context& context, Action& chosen);
void add_ctk_system(CLI::App& app, Context& context, Action& chosen);

}  // namespace gantry::cli
