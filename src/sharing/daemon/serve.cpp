// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/serve.hpp"

#include "base/core/clock.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/daemon/heartbeat.hpp"
#include "sharing/daemon/log_file.hpp"
#include "sharing/daemon/share_daemon.hpp"
#include "sharing/daemon/start_detached.hpp"
#include "sharing/daemon/watchdog.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
constexpr auto kLockPatience = 3s;  // for a daemon that is shutting down
constexpr std::chrono::milliseconds kFirstShareWithin =
    15s;  // after this, a daemon that is not needed exits
constexpr std::chrono::milliseconds kIdleFor = 500ms;
constexpr std::chrono::milliseconds kHeartbeatEvery = 200ms;
constexpr std::chrono::milliseconds kWatchdogEvery = 300ms;

// Held until the process ends.
Result<sys::UniqueFd> take_lock(const sys::Host& host) {
  const auto path = host.outside(kLockFile);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  sys::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return Error::sys(errno, "open").in(path);
  const auto until = Clock::now() + kLockPatience;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Error::sys(errno, "flock").in(path);
    if (Clock::now() > until || Client::connect(host).ok())
      return Error(Errc::Busy,
                   "the share daemon is already running on this machine; `gantry share ls` lists "
                   "its shares");
    std::this_thread::sleep_for(10ms);
  }
  return lock;
}

// Without these permissions the daemon is slower, but still correct.
void be_quick() {
  // Does not lock future memory: if locking is limited, later allocations would fail.
  ::mlockall(MCL_CURRENT | MCL_ONFAULT);
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;  // two for each process of a share
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

// If the machine runs out of memory, the daemon should be among the last processes to be killed,
// because it enforces the limits of all; the shares' programs are much larger. Only root may
// request this. Returns the previous value, which the child process gets.
std::optional<int> be_spared() {
  constexpr int kSpared =
      -900;  // -1000 means never, which is for processes that the machine cannot run without
  const sys::UniqueFd file(::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
  std::array<char, 16> text{};
  if (!file.valid() || ::read(file.get(), text.data(), text.size() - 1) <= 0) return std::nullopt;
  const int before = std::atoi(text.data());  // NOLINT(cert-err34-c): the kernel's own number
  if (before <= kSpared) return std::nullopt;
  const auto wanted = fmt::to_string(kSpared);
  const auto written = ::pwrite(file.get(), wanted.data(), wanted.size(), 0);
  return written > 0 ? std::optional(before) : std::nullopt;
}

Result<sys::UniqueFd> catch_signals() {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  if (::sigprocmask(SIG_BLOCK, &ends, nullptr) != 0) return Error::sys(errno, "sigprocmask");
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  sys::UniqueFd fd(::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return Error::sys(errno, "signalfd");
  return fd;
}

// Writes to standard error. If that is the log file that a client opened for us, its size is
// limited.
LogSink to_own_file(const sys::Host& host) {
  return [path = host.outside(kLogPath)](std::string_view line) {
    write_to_stderr(line);
    rotate_if_large(STDERR_FILENO, path);
  };
}

// Writes the heartbeat, and starts the watchdog if it does not run.
class SelfSupervision {
 public:
  SelfSupervision(sys::Loop& loop, const ShareDaemon& share_daemon, const ServeOptions& options,
                  const sys::UniqueFd& lock)
      : lock_(lock),
        heartbeat_(loop.every(kHeartbeatEvery, [this] { write_heartbeat(lock_.get(), self_); })),
        watchdog_(loop.every(kWatchdogEvery, [&share_daemon, &options] {
          if (options.watchdog.empty() || !share_daemon.served()) return;
          if (share_daemon.idle() || watchdog_runs(options.host)) return;
          (void)start_detached(options.watchdog, options.host.outside(kLogPath)).ok();
        })) {
    write_heartbeat(lock.get(), self_);
  }
  ~SelfSupervision() { erase_heartbeat(lock_.get()); }
  SelfSupervision(const SelfSupervision&) = delete;
  SelfSupervision& operator=(const SelfSupervision&) = delete;

 private:
  const sys::UniqueFd& lock_;
  ProcessRef self_ = process_ref(::getpid());
  sys::Loop::Timer heartbeat_;
  sys::Loop::Timer watchdog_;
};

// A simulated machine is a directory and may be deleted while it has shares. Then no client can
// reach them, and they would never be removed.
bool machine_is_gone(const sys::Host& host, const sys::UniqueFd& lock) {
  struct stat file {};
  return !host.is_live() && ::fstat(lock.get(), &file) == 0 && file.st_nlink == 0;
}

// Ends the loop if the daemon was not needed for a while, or can no longer be reached.
class IdleEnd {
 public:
  IdleEnd(sys::Loop& loop, const ShareDaemon& share_daemon, const sys::Host& host,
          const sys::UniqueFd& lock)
      : since_(Clock::now()), timer_(loop.every(50ms, [this, &loop, &share_daemon, &host, &lock] {
          const auto now = Clock::now();
          if (machine_is_gone(host, lock)) loop.stop();
          if (!share_daemon.idle()) since_ = now;
          if (now - since_ > (share_daemon.served() ? kIdleFor : kFirstShareWithin)) loop.stop();
        })) {}

 private:
  Clock::time_point since_;
  sys::Loop::Timer timer_;
};

}  // namespace

Status serve(ServeOptions options) {
  if (!options.log) options.log = to_own_file(options.host);
  GANTRY_TRY(const auto lock, take_lock(options.host));
  GANTRY_TRY(const auto signals, catch_signals());
  be_quick();
  options.sensor.oom_score_adj = be_spared();
  GANTRY_TRY(const auto loop, sys::Loop::make());
  GANTRY_TRY(const auto on_signal,
             loop->watch(signals.get(), EPOLLIN, [&](std::uint32_t) { loop->stop(); }));
  GANTRY_TRY(const auto share_daemon,
             ShareDaemon::open(*loop, options.host, std::move(options.sensor),
                               Log(LogForm::Json, 0, options.log).component_key("share")));
  const SelfSupervision supervision(*loop, *share_daemon, options, lock);
  share_daemon->raise_priority();
  std::optional<IdleEnd> end;
  if (options.life == Lifetime::UntilIdle) end.emplace(*loop, *share_daemon, options.host, lock);
  return loop->run();
}

}  // namespace gantry::daemon
