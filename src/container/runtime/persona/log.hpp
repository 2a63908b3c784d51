// SPDX-License-Identifier: Apache-2.0
// Log of the OCI runtime: stderr and the file of --log. Engines show the last lines of that file to
// their users and parse logrus' formats, so it is written in these.
#pragma once

#include "container/runtime/persona/command_line.hpp"

#include <ctime>
#include <string>
#include <string_view>

namespace gantry::runtime {

// One line of the log file: {"level":"error","msg":...,"time":...} or level=error msg=... time=...
std::string log_line(std::string_view format, std::string_view level, std::string_view message,
                     std::time_t now);

// Appends to the file of --log, if one was given. Ignores write errors.
void write_log(const CommandLine& line, std::string_view level, std::string_view message);

// Returns true if a log with `log_level` contains messages of `level`, in logrus' order. An unknown
// level counts as "info".
bool is_logged(std::string_view log_level, std::string_view level);

// Writes the error to stderr and to the log.
void report_error(const CommandLine& line, std::string_view message);

}  // namespace gantry::runtime
