// SPDX-License-Identifier: Apache-2.0
// Parses a command line with CLI11, and mends what CLI11 2.1 does with `--option=`: it takes an
// empty value for a missing one and reads the next argument as the value.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
}  // namespace CLI

namespace gantry::command_line {

// `--name=` becomes the two words `--name` and ``, and `-n=VALUE` becomes `-n` and `VALUE`, if the
// command has such an option and it takes a value. `words` is without the program's name. Throws
// CLI::ArgumentMismatch for a flag with an empty value.
std::vector<std::string> separate_values(const CLI::App& app,
                                         const std::vector<std::string>& words);

// Use this instead of app.parse(argc, argv). Throws CLI::ParseError, as app.parse() does.
void parse_arguments(CLI::App& app, int argc, char** argv);

}  // namespace gantry::command_line
