// SPDX-License-Identifier: Apache-2.0
#include "keeper/serve.hpp"

#include "keeper/client.hpp"
#include "keeper/keeper.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>

namespace gantry::keeper {
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
                   "this machine has a keeper of shares already; `gantry share ls` "
                   "asks it");
    std::this_thread::sleep_for(10ms);
  }
  return lock;
}

// Gates change in milliseconds: nothing that is usual on a busy machine may stand before us. What
// is not allowed is not needed to be right, only to be quick.
void be_quick() {
  const sched_param first{.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) != 0)
    ::setpriority(PRIO_PROCESS, 0, -10);
  // Not what comes later: where locking is limited, memory would be refused then.
  ::mlockall(MCL_CURRENT | MCL_ONFAULT);
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;  // two for each process of a share
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
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

// Ends the loop when nobody has needed us for a while.
class IdleEnd {
 public:
  IdleEnd(sys::Loop& loop, const Keeper& keeper)
      : since_(Clock::now()), timer_(loop.every(50ms, [this, &loop, &keeper] {
          const auto now = Clock::now();
          if (!keeper.idle()) since_ = now;
          if (now - since_ > (keeper.served() ? kIdleFor : kFirstShareWithin)) loop.stop();
        })) {}

 private:
  Clock::time_point since_;
  sys::Loop::Timer timer_;
};

}  // namespace

Status serve(ServeOptions options) {
  GANTRY_TRY(const auto lock, take_lock(options.host));
  GANTRY_TRY(const auto signals, catch_signals());
  be_quick();
  GANTRY_TRY(const auto loop, sys::Loop::make());
  GANTRY_TRY(const auto on_signal,
             loop->watch(signals.get(), EPOLLIN, [&](std::uint32_t) { loop->stop(); }));
  GANTRY_TRY(const auto keeper,
             Keeper::open(*loop, options.host, std::move(options.sensor), Log(options.log)));
  std::optional<IdleEnd> end;
  if (options.life == Life::UntilIdle) end.emplace(*loop, *keeper);
  return loop->run();
}

}  // namespace gantry::keeper
