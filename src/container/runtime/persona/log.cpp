// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/log.hpp"

#include "base/core/printable.hpp"
#include "base/json/document.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace gantry::runtime {
namespace {

std::string utc(std::time_t now) {
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

int rank(std::string_view level) {
  if (level == "warn") level = "warning";
  constexpr std::array<std::string_view, 7> kLevels{"trace", "debug", "info", "warning",
                                                    "error", "fatal", "panic"};
  const auto* const found = std::find(kLevels.begin(), kLevels.end(), level);
  return found == kLevels.end() ? rank("info") : static_cast<int>(found - kLevels.begin());
}

}  // namespace

bool is_logged(std::string_view log_level, std::string_view level) {
  return rank(level) >= rank(log_level);
}

std::string log_line(std::string_view format, std::string_view level, std::string_view message,
                     std::time_t now) {
  const auto text = json::quote(message);
  if (format == "json") {
    return fmt::format("{{\"level\":\"{}\",\"msg\":{},\"time\":\"{}\"}}\n", level, text, utc(now));
  }
  return fmt::format("time=\"{}\" level={} msg={}\n", utc(now), level, text);
}

void write_log(const CommandLine& line, std::string_view level, std::string_view message) {
  if (line.log.empty()) return;
  const sys::UniqueFd fd(
      ::open(line.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
  if (!fd.valid()) return;
  const auto text = log_line(line.log_format, level, message, std::time(nullptr));
  (void)!::write(fd.get(), text.data(), text.size());
}

void report_error(const CommandLine& line, std::string_view message) {
  std::fprintf(stderr, "gantry-runtime: %s\n", printable(message).c_str());
  write_log(line, "error", message);
}

}  // namespace gantry::runtime
