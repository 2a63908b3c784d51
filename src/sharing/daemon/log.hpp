// SPDX-License-Identifier: Apache-2.0
// The share daemon's log: one JSON object per line, one write() each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::daemon {

enum class Level : std::uint8_t { Info, Warning, Error };

void write_to_stderr(std::string_view line);

class Log {
 public:
  using Sink = std::function<void(std::string_view line)>;
  explicit Log(Sink sink = {});  // empty: standard error

  // `share`: the share that the line is about; "" for the daemon itself.
  void write(Level level, std::string_view share, std::string_view text) const;
  void info(std::string_view share, std::string_view text) const {
    write(Level::Info, share, text);
  }
  void warning(std::string_view share, std::string_view text) const {
    write(Level::Warning, share, text);
  }
  void error(std::string_view share, std::string_view text) const {
    write(Level::Error, share, text);
  }

 private:
  Sink sink_;
};

}  // namespace gantry::daemon
