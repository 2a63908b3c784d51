// SPDX-License-Identifier: Apache-2.0
// Where an OCI runtime's words go: stderr, and the file of --log, whose last lines engines show to
// their users. Written in logrus' forms, which is what they parse.
#pragma once

#include "container/runtime/persona/command_line.hpp"

#include <ctime>
#include <string>
#include <string_view>

namespace gantry::runtime {

// One line of the log file: {"level":"error","msg":...,"time":...} or level=error msg=... time=...
std::string log_line(std::string_view format, std::string_view level, std::string_view message,
                     std::time_t now);

// Appends to the file of --log, if one was given. A log that cannot be written stops nothing.
void write_log(const CommandLine& line, std::string_view level, std::string_view message);

// Whether a message of that level goes into a log that was set to another; in logrus' order. An
// unknown word counts as "info".
bool is_logged(std::string_view log_level, std::string_view level);

// The error on stderr and in the log.
void report_error(const CommandLine& line, std::string_view message);

}  // namespace gantry::runtime
