// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/log.hpp"

namespace gantry::runtime {

Log engine_log(const CommandLine& line) {
  return Log(line.log_format == "json" ? LogForm::LogrusJson : LogForm::Logrus, 0,
             append_to_file(line.log));
}

void report_error(const CommandLine& line, std::string_view message) {
  Log(LogForm::Plain).write(LogLevel::Error, "gantry-runtime", message);
  engine_log(line).write(LogLevel::Error, "", message);
}

}  // namespace gantry::runtime
