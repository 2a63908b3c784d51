// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace gantry::scheduler {

// Receives the scheduler's log lines; `where` names the part that writes the line. Any thread may
// call it.
struct Logger {
  using Line = std::function<void(std::string_view where, std::string_view text)>;
  Line info;
  Line warning;
  Line detail;
};

}  // namespace gantry::scheduler
