// SPDX-License-Identifier: Apache-2.0
// The subcommands of `gantry cdi` and `nvidia-ctk cdi`. Each has one line here and one row in a
// table of cdi.cpp.
#pragma once

#include "container/cdi/spec.hpp"
#include "gantry/command.hpp"

#include <string>
#include <string_view>

namespace gantry::cli {

void add_cdi_generate(CLI::App& cdi, Context& context, Action& chosen);
void add_cdi_refresh(CLI::App& cdi, Context& context, Action& chosen);
void add_cdi_list(CLI::App& cdi, Context& context, Action& chosen);
void add_cdi_transform(CLI::App& cdi, Context& context, Action& chosen);
void add_cdi_validate(CLI::App& cdi, Context& context, Action& chosen);

void add_ctk_cdi_generate(CLI::App& cdi, Context& context, Action& chosen);
void add_ctk_cdi_list(CLI::App& cdi, Context& context, Action& chosen);

// Reads a file that was named on the command line; "-" is standard input. Paths are the caller's,
// not relative to --root.
Result<std::string> read_spec_text(const std::string& path);
Result<cdi::Spec> read_spec_file(const std::string& path);

// Writes to a file (as JSON if its name ends in .json), or as YAML to standard output if the path
// is "" or "-".
Status print_spec(const cdi::Spec& spec, const std::string& output, Context& context);

}  // namespace gantry::cli
