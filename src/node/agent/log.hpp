// SPDX-License-Identifier: Apache-2.0
// The agent's log lines: in klog's form, which operators of device plugins know and grep, or as
// JSON. One write() a line, so that lines of several processes do not mix.
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
  explicit Log(options::LogFormat format, std::int64_t verbosity = 0);  // to standard error
  Log(options::LogFormat format, std::int64_t verbosity, Sink sink);

  // The same log for somebody who speaks beside others' lines: what is only information is said
  // with -v=1 or more.
  Log quiet_copy() const;

  // `where`: the part of the agent that speaks.
  void info(std::string_view where, std::string_view text) const;
  void warning(std::string_view where, std::string_view text) const;
  void error(std::string_view where, std::string_view text) const;
  // Only with -v=LEVEL or more.
  void detail(std::int64_t level, std::string_view where, std::string_view text) const;

 private:
  void write(Severity severity, std::string_view where, std::string_view text) const;
  options::LogFormat format_;
  std::int64_t verbosity_;
  std::int64_t info_from_ = 0;  // the verbosity from which on info() is said
  Sink sink_;
};

}  // namespace gantry::agent
