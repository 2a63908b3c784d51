// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/log.hpp"

#include "base/json/document.hpp"

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <utility>

namespace gantry::daemon {
namespace {

constexpr std::array<std::string_view, 3> kWords{"info", "warning", "error"};

}  // namespace

void write_to_stderr(std::string_view line) {
  (void)!::write(STDERR_FILENO, line.data(),
                 line.size());  // nobody reads the log; that is no reason to stop
}

Log::Log(Sink sink) : sink_(sink ? std::move(sink) : write_to_stderr) {}

void Log::write(Level level, std::string_view share, std::string_view text) const {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  sink_(
      fmt::format("{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\",\"level\":\"{}\"{}{},\"msg\":{}}}\n",
                  fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000,
                  kWords[static_cast<std::size_t>(level)], share.empty() ? "" : ",\"share\":",
                  share.empty() ? "" : json::quote(share), json::quote(text)));
}

}  // namespace gantry::daemon
