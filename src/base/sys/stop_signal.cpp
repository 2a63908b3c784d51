// SPDX-License-Identifier: Apache-2.0
#include "base/sys/stop_signal.hpp"

#include "base/core/result.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdint>

namespace gantry::sys {

StopSignal::StopSignal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  GANTRY_ASSERT(event_.valid());  // a program that starts without descriptors cannot do its work
}

void StopSignal::raise() {
  raised_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable.
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

bool StopSignal::sleep(std::chrono::milliseconds time) const {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + time;
  while (!raised()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now()).count();
    if (left <= 0) return true;
    pollfd poll{.fd = event_.get(), .events = POLLIN, .revents = 0};
    ::poll(&poll, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
  }
  return false;
}

}  // namespace gantry::sys
