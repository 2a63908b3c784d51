// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/watchdog.hpp"

#include "base/core/clock.hpp"
#include "base/sys/unique_fd.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/daemon/heartbeat.hpp"
#include "sharing/daemon/shared_pages.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kLookAtSignEvery = 200ms;
constexpr milliseconds kFirstPause = 100ms;  // between two daemons that do not live long
constexpr milliseconds kLongestPause = 5s;
constexpr auto kLivedLong = 10s;

sys::UniqueFd open_watchdog_lock(const sys::Host& host) {
  return sys::UniqueFd(::open(host.outside(kWatchdogLockFile).c_str(),
                              O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
}

// Invalid if the process has ended.
sys::UniqueFd open_process(const ProcessRef& process) {
  sys::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  return is_running(process) ? std::move(pidfd) : sys::UniqueFd();
}

bool ends_within(const sys::UniqueFd& pidfd, milliseconds time) {
  pollfd wait{pidfd.get(), POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(time.count())) > 0;
}

class Watchdog {
 public:
  Watchdog(const WatchdogOptions& options, const Log& log) : options_(options), log_(log) {}

  void run() {
    while (const auto heartbeat = first_heartbeat()) {
      const auto daemon = open_process(heartbeat->process);
      const auto since = Clock::now();
      if (daemon.valid()) wait_for_end(daemon, heartbeat->process.pid);
      if (!read_heartbeat(options_.host)) return;  // it ended on purpose
      if (read_records(options_.host).records.empty()) return;
      if (Clock::now() - since > kLivedLong) pause_ = 0ms;
      log_.warning("", "the share daemon was killed, starting another one",
                   {{"pid", heartbeat->process.pid}});
      start();
    }
  }

 private:
  std::optional<Heartbeat> first_heartbeat() const {
    const auto until = Clock::now() + options_.first_heartbeat_within;
    auto heartbeat = read_heartbeat(options_.host);
    while (!heartbeat && Clock::now() < until && !read_records(options_.host).records.empty()) {
      std::this_thread::sleep_for(kLookAtSignEvery);
      heartbeat = read_heartbeat(options_.host);
    }
    return heartbeat;
  }

  // Kills it if it writes no heartbeat. If we did not run either, the machine slept, not the
  // daemon.
  void wait_for_end(const sys::UniqueFd& daemon, pid_t pid) const {
    for (;;) {
      const auto before = Clock::now();
      if (ends_within(daemon, kLookAtSignEvery)) return;
      if (Clock::now() - before > 2 * kLookAtSignEvery) continue;
      const auto heartbeat = read_heartbeat(options_.host);
      if (!heartbeat || heartbeat->process.pid != pid) return;
      const auto silent = std::chrono::nanoseconds(monotonic_ns()) - heartbeat->at;
      if (silent < options_.hung_after) continue;
      log_.warning("", "the share daemon hangs, killing it",
                   {{"pid", pid},
                    {"state", describe_hang(pid)},
                    {"silent_ms", std::chrono::duration_cast<milliseconds>(silent).count()}});
      ::syscall(SYS_pidfd_send_signal, daemon.get(), SIGKILL, nullptr, 0);
      if (ends_within(daemon, 5s)) return;
    }
  }

  void start() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    const auto started = Client::connect_or_start(options_.host, options_.program);
    if (!started.ok()) log_.error("", "cannot start the share daemon", {{"err", started.error()}});
  }

  const WatchdogOptions& options_;
  const Log& log_;
  milliseconds pause_{0};
};

}  // namespace

bool watchdog_runs(const sys::Host& host) {
  const auto lock = open_watchdog_lock(host);
  return lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

Status watch_over_daemon(const WatchdogOptions& options, const Log& log) {
  const auto lock = open_watchdog_lock(options.host);
  if (!lock.valid()) return Error::sys(errno, "open").in(options.host.outside(kWatchdogLockFile));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return {};
  Watchdog(options, log).run();
  return {};
}

}  // namespace gantry::daemon
