// SPDX-License-Identifier: Apache-2.0
#include "net/kube/event.hpp"

#include <fmt/chrono.h>

namespace gantry::kube {

std::string format_utc(std::int64_t unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

}  // namespace gantry::kube
