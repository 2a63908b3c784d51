// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace gantry::scheduler {

// Where the scheduler's log lines go; `where`: the part of it that speaks. Called by any thread.
struct Logger {
  using Line = std::function<void(std::string_view where, std::string_view text)>;
  Line info;
  Line warning;
  Line detail;
};

}  // namespace gantry::scheduler
