// SPDX-License-Identifier: Apache-2.0
// The log of every program. A line is one event: constant text, which can be searched and counted,
// and fields with the values.
//   log.warning("health", "device unhealthy", {{"gpu", gpu.uuid.text}, {"xid", 79}});
// Each line is one write(), so that the lines of several processes do not mix. Fields may hold text
// from untrusted sources: control characters are escaped in every form.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log_field.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gantry {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error, Fatal };

// The level with logrus' name for it, such as "warning". "trace" counts as Debug, "panic" as
// Fatal, an unknown name as Info.
LogLevel parse_log_level(std::string_view name);

enum class LogForm : std::uint8_t {
  Klog,          // W0311 05:51:00.170991    1234 health] device unhealthy gpu="GPU-1a2b" xid=79
  ContainerCli,  // the same without the padding of the pid, as libnvidia-container writes it
  Json,        // {"time":...,"level":"warning","where":"health","msg":"device unhealthy","gpu":...}
  Logrus,      // time="..." level=warning msg="device unhealthy" gpu=GPU-1a2b xid=79
  LogrusJson,  // {"level":"warning","msg":"device unhealthy","time":"...","gpu":...}
  Plain,       // health: device unhealthy gpu="GPU-1a2b" xid=79
};

// Text that is known when the program is compiled. A value belongs into a field.
class LogText {
 public:
  template <std::size_t Size>
  consteval LogText(const char (&literal)[Size])  // NOLINT: implicit on purpose
      : text_(literal, Size - 1) {}
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

using LogSink = std::function<void(std::string_view line)>;

void write_to_stderr(std::string_view line);
// Opens the file for each line, with further flags of open(), and appends to it. Ignores errors; ""
// means no file.
LogSink append_to_file(std::string path, int flags = 0);

class Log {
 public:
  // `verbosity`: the -v of the command line.
  explicit Log(LogForm form, std::int64_t verbosity = 0, LogSink sink = write_to_stderr);

  // Copies with another setting.
  Log quiet() const;                          // info() writes only with -v=1 or more
  Log starting_at(LogLevel least) const;      // leaves out what is less severe
  Log component_key(std::string name) const;  // the member of LogForm::Json for the component

  // `component` names the part of the program that writes the line; it may be empty.
  void debug(std::string_view component, LogText text, LogFields fields = {}) const;
  void info(std::string_view component, LogText text, LogFields fields = {}) const;
  void warning(std::string_view component, LogText text, LogFields fields = {}) const;
  void error(std::string_view component, LogText text, LogFields fields = {}) const;
  // An info line that is written only with -v=LEVEL or more.
  void detail(std::int64_t level, std::string_view component, LogText text,
              LogFields fields = {}) const;
  // A line whose text another program or its users prescribe. It need not be constant.
  void write(LogLevel level, std::string_view component, std::string_view text,
             LogFields fields = {}) const;

 private:
  LogForm form_;
  std::int64_t verbosity_;
  std::int64_t info_from_ = 0;  // the verbosity at which info() starts to write
  LogLevel least_ = LogLevel::Debug;
  std::string component_key_ = "where";
  LogSink sink_;
};

struct LogLine {
  LogLevel level = LogLevel::Info;
  std::string_view component = {};
  std::string_view text = {};
  LogFields fields = {};
  std::chrono::system_clock::time_point time = {};
  int pid = 0;
  std::string_view component_key = "where";
};
std::string format_log_line(LogForm form, const LogLine& line);

}  // namespace gantry
