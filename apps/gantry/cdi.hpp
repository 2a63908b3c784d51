// SPDX-License-Identifier: Apache-2.0
// The commands below `gantry cdi` and `nvidia-ctk cdi`: one line each here, one row each in the
// tables of cdi.cpp.
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

// A file of the command line, "-" for standard input. Paths are the caller's, not the machine's
// below --root.
Result<std::string> read_spec_text(const std::string& path);
Result<cdi::Spec> read_spec_file(const std::string& path);

// To a file by its name (.json is JSON), or as YAML to standard output for "" and "-".
Status print_spec(const cdi::Spec& spec, const std::string& output, Context& context);

}  // namespace gantry::cli
