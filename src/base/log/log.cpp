// SPDX-License-Identifier: Apache-2.0
#include "base/log/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace gantry {
namespace {

void write_line(int fd, std::string_view line) {
  while (!line.empty()) {
    const auto written = ::write(fd, line.data(), line.size());
    if (written <= 0) return;  // the log cannot be written: continue without it
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

LogLevel parse_log_level(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, LogLevel>, 8> kNames{{
      {"trace", LogLevel::Debug},
      {"debug", LogLevel::Debug},
      {"info", LogLevel::Info},
      {"warn", LogLevel::Warning},
      {"warning", LogLevel::Warning},
      {"error", LogLevel::Error},
      {"fatal", LogLevel::Fatal},
      {"panic", LogLevel::Fatal},
  }};
  for (const auto& [known, level] : kNames) {
    if (known == name) return level;
  }
  return LogLevel::Info;
}

void write_to_stderr(std::string_view line) {
  write_line(STDERR_FILENO, line);
}

LogSink append_to_file(std::string path, int flags) {
  return [path = std::move(path), flags](std::string_view line) {
    if (path.empty()) return;
    const int fd =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC | flags, 0644);
    if (fd < 0) return;
    write_line(fd, line);
    ::close(fd);
  };
}

Log::Log(LogForm form, std::int64_t verbosity, LogSink sink)
    : form_(form), verbosity_(verbosity), sink_(std::move(sink)) {}

Log Log::quiet() const {
  Log log(*this);
  log.info_from_ = 1;
  return log;
}

Log Log::starting_at(LogLevel least) const {
  Log log(*this);
  log.least_ = least;
  return log;
}

Log Log::component_key(std::string name) const {
  Log log(*this);
  log.component_key_ = std::move(name);
  return log;
}

void Log::debug(std::string_view component, LogText text, LogFields fields) const {
  write(LogLevel::Debug, component, text.text(), fields);
}

void Log::info(std::string_view component, LogText text, LogFields fields) const {
  detail(info_from_, component, text, fields);
}

void Log::warning(std::string_view component, LogText text, LogFields fields) const {
  write(LogLevel::Warning, component, text.text(), fields);
}

void Log::error(std::string_view component, LogText text, LogFields fields) const {
  write(LogLevel::Error, component, text.text(), fields);
}

void Log::detail(std::int64_t level, std::string_view component, LogText text,
                 LogFields fields) const {
  if (verbosity_ >= level) write(LogLevel::Info, component, text.text(), fields);
}

void Log::write(LogLevel level, std::string_view component, std::string_view text,
                LogFields fields) const {
  if (level < least_) return;
  sink_(format_log_line(form_, {.level = level,
                                .component = component,
                                .text = text,
                                .fields = fields,
                                .time = std::chrono::system_clock::now(),
                                .pid = ::getpid(),
                                .component_key = component_key_}));
}

}  // namespace gantry
