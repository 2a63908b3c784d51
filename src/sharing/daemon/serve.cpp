// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/serve.hpp"

#include "sharing/daemon/client.hpp"
#include "sharing/daemon/log_file.hpp"
#include "sharing/daemon/share_daemon.hpp"

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
using Clock = std::chrono::steady_clock;

constexpr auto kLockPatience = 3s;  // for one that is just ending
constexpr std::chrono::milliseconds kFirstShareWithin =
    15s;  // after that, a keeper that nobody needs goes away
constexpr std::chrono::milliseconds kIdleFor = 500ms;

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

// What is not allowed is not needed to be right, only to be quick.
void be_quick() {
  // Not what comes later: where locking is limited, memory would be refused then.
  ::mlockall(MCL_CURRENT | MCL_ONFAULT);
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;  // two for each process of a share
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

// When memory runs short, who keeps the limits of all should be among the last to go; their
// programs are larger by far. For root alone: others may not ask for it. Gives what it was before:
// that is for our child.
std::optional<int> be_spared() {
  constexpr int kSpared = -900;  // -1000 is never: that is for what the machine cannot do without
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

// Standard error; where that is the log that a client started us with, it does not grow for ever.
Log::Sink to_own_file(const sys::Host& host) {
  return [path = host.outside(kLogPath)](std::string_view line) {
    write_to_stderr(line);
    rotate_if_large(STDERR_FILENO, path);
  };
}

// A simulated machine is a directory, and may be deleted with shares in it: nobody can ask for them
// then, and they would never be removed.
bool machine_is_gone(const sys::Host& host, const sys::UniqueFd& lock) {
  struct stat file {};
  return !host.is_live() && ::fstat(lock.get(), &file) == 0 && file.st_nlink == 0;
}

// Ends the loop when nobody has needed us for a while, or can any more.
class IdleEnd {
 public:
  IdleEnd(sys::Loop& loop, const ShareDaemon& keeper, const sys::Host& host,
          const sys::UniqueFd& lock)
      : since_(Clock::now()), timer_(loop.every(50ms, [this, &loop, &keeper, &host, &lock] {
          const auto now = Clock::now();
          if (machine_is_gone(host, lock)) loop.stop();
          if (!keeper.idle()) since_ = now;
          if (now - since_ > (keeper.served() ? kIdleFor : kFirstShareWithin)) loop.stop();
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
  GANTRY_TRY(const auto keeper,
             ShareDaemon::open(*loop, options.host, std::move(options.sensor), Log(options.log)));
  keeper->raise_priority();
  std::optional<IdleEnd> end;
  if (options.life == Lifetime::UntilIdle) end.emplace(*loop, *keeper, options.host, lock);
  return loop->run();
}

}  // namespace gantry::daemon
