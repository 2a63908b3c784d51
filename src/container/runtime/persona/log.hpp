// SPDX-License-Identifier: Apache-2.0
// Log of the OCI runtime: stderr and the file of --log. Engines show the last lines of that file to
// their users and parse logrus' formats, so it is written in these. They show `msg` alone, so an
// error is in the text, not in a field.
#pragma once

#include "base/log/log.hpp"
#include "container/runtime/persona/command_line.hpp"

#include <string_view>

namespace gantry::runtime {

// Appends to the file of --log, if one was given. Ignores write errors.
Log engine_log(const CommandLine& line);

// Writes the error to stderr and to the file of --log.
void report_error(const CommandLine& line, std::string_view message);

}  // namespace gantry::runtime
