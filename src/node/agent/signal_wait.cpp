// SPDX-License-Identifier: Apache-2.0
#include "node/agent/signal_wait.hpp"

#include "node/options/options.hpp"

#include <cerrno>
#include <ctime>

namespace gantry::agent {

Result<SignalWait> SignalWait::make() {
  SignalWait made;
  ::sigemptyset(&made.signals_);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGQUIT}) ::sigaddset(&made.signals_, signal);
  if (::sigprocmask(SIG_BLOCK, &made.signals_, nullptr) != 0)
    return Error::sys(errno, "sigprocmask");
  return made;
}

WakeReason SignalWait::wait(std::chrono::milliseconds time) const {
  siginfo_t info{};
  int got = -1;
  do {
    if (time == options::kInfinite) {
      got = ::sigwaitinfo(&signals_, &info);
    } else {
      const timespec rest{.tv_sec = time.count() / 1000,
                          .tv_nsec = time.count() % 1000 * 1'000'000};
      got = ::sigtimedwait(&signals_, &info, &rest);
    }
  } while (got < 0 && errno == EINTR);
  if (got < 0) return WakeReason::Time;
  return got == SIGHUP ? WakeReason::Hangup : WakeReason::End;
}

}  // namespace gantry::agent
