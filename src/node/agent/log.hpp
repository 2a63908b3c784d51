// SPDX-License-Identifier: Apache-2.0
// The agent's log, in klog's format, which operators of device plugins know and grep, or as JSON.
// Each line is one write(), so lines of several processes do not mix.
#pragma once

#include "node/options/options.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::agent {

enum class Severity : std::uint8_t { Info, Warning, Error };

// "I0311 05:51:00.170991    1234 agent] text" or {"time":...,"level":"info","where":...,"msg":...}.
std::string log_line(options::LogFormat format, Severity severity, std::string_view where,
                     std::string_view text, std::chrono::system_clock::time_point now, int pid);

class Log {
 public:
  using Sink = std::function<void(std::string_view line)>;
  explicit Log(options::LogFormat format, std::int64_t verbosity = 0);  // writes to standard error
  Log(options::LogFormat format, std::int64_t verbosity, Sink sink);

  // A copy that writes info lines only with -v=1 or more. For parts whose lines would stand between
  // the lines of GKE's plugin.
  Log quiet_copy() const;

  // `where` names the part of the agent that writes the line.
  void info(std::string_view where, std::string_view text) const;
  void warning(std::string_view where, std::string_view text) const;
  void error(std::string_view where, std::string_view text) const;
  // Written only with -v=LEVEL or more.
  void detail(std::int64_t level, std::string_view where, std::string_view text) const;

 private:
  void write(Severity severity, std::string_view where, std::string_view text) const;
  options::LogFormat format_;
  std::int64_t verbosity_;
  std::int64_t info_from_ = 0;  // the verbosity at which info() starts to write
  Sink sink_;
};

}  // namespace gantry::agent
