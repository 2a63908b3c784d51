// SPDX-License-Identifier: Apache-2.0
#include "node/agent/log.hpp"

#include "base/core/printable.hpp"
#include "base/json/document.hpp"

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>

namespace gantry::agent {
namespace {

constexpr std::array<std::string_view, 3> kWords{"info", "warning", "error"};

void to_stderr(std::string_view line) {
  while (!line.empty()) {
    const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    if (written <= 0) return;  // the log cannot be written: continue without it
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string log_line(options::LogFormat format, Severity severity, std::string_view where,
                     std::string_view text, std::chrono::system_clock::time_point now, int pid) {
  const auto since = now.time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  const auto seconds = static_cast<std::time_t>(micros / 1'000'000);
  const auto word = kWords[static_cast<std::size_t>(severity)];
  if (format == options::LogFormat::Json)
    return fmt::format(
        R"({{"time":"{:%Y-%m-%dT%H:%M:%S}.{:06}Z","level":"{}","where":{},"msg":{}}})"
        "\n",
        fmt::gmtime(seconds), micros % 1'000'000, word, json::quote(where), json::quote(text));
  return fmt::format("{}{:%m%d %H:%M:%S}.{:06} {:7} {}] {}\n",
                     static_cast<char>(word[0] - 'a' + 'A'), fmt::localtime(seconds),
                     micros % 1'000'000, pid, where, printable(text));
}

Log::Log(options::LogFormat format, std::int64_t verbosity) : Log(format, verbosity, to_stderr) {}

Log::Log(options::LogFormat format, std::int64_t verbosity, Sink sink)
    : format_(format), verbosity_(verbosity), sink_(std::move(sink)) {}

void Log::write(Severity severity, std::string_view where, std::string_view text) const {
  sink_(log_line(format_, severity, where, text, std::chrono::system_clock::now(), ::getpid()));
}

Log Log::quiet_copy() const {
  Log log(*this);
  log.info_from_ = 1;
  return log;
}

void Log::info(std::string_view where, std::string_view text) const {
  if (verbosity_ >= info_from_) write(Severity::Info, where, text);
}
void Log::warning(std::string_view where, std::string_view text) const {
  write(Severity::Warning, where, text);
}
void Log::error(std::string_view where, std::string_view text) const {
  write(Severity::Error, where, text);
}
void Log::detail(std::int64_t level, std::string_view where, std::string_view text) const {
  if (verbosity_ >= level) write(Severity::Info, where, text);
}

}  // namespace gantry::agent
