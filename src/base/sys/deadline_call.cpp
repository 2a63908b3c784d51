// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_call.hpp"

#include "base/core/clock.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::sys {
namespace {

constexpr std::chrono::milliseconds kInterruptAfter{1000};  // counted from the deadline

// What the processes tell us, each with one write to a pipe, which is atomic.
struct CallerReport {
  enum Kind : int { Started, ForkFailed, Returned };
  int kind = Returned;
  int pid_or_errno = 0;
  CallOutcome outcome = {};
};

// All that the calling process needs. It is prepared before the fork: that process may be forked
// from one with threads, so it may make system calls only.
struct CallJob {
  int report;
  int file;                  // -1: none
  unsigned last_descriptor;  // where close_range is missing
  const std::function<CallOutcome(int)>* call;
  itimerval interrupt;
};

void send_report(const CallJob& job, const CallerReport& report) {
  if (::write(job.report, &report, sizeof report) < 0) return;  // the waiting process gave up
}

// A process that hangs must not keep a lock, a socket or the other end of a pipe.
void close_all_others(const CallJob& job) {
  const int file = job.file < 0 ? job.report : job.file;
  const std::array kept{std::min(job.report, file), std::max(job.report, file)};
  close_all_but(kept, job.last_descriptor);
}

// Only SIGKILL and our own alarm end the process: Ctrl-C in a terminal must not stop a call that
// the journal says is under way.
void leave_our_session(const CallJob& job) {
  ::setsid();
  if (::chdir("/") != 0) return;  // it only keeps a directory in use
  ::signal(SIGALRM, SIG_DFL);
  sigset_t blocked;
  ::sigfillset(&blocked);
  ::sigdelset(&blocked, SIGALRM);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::setitimer(ITIMER_REAL, &job.interrupt, nullptr);
}

[[noreturn]] void run_caller(const CallJob& job) {
  leave_our_session(job);
  close_all_others(job);
  send_report(job, {.kind = CallerReport::Started, .pid_or_errno = ::getpid()});
  const auto outcome = (*job.call)(job.file);
  send_report(job, {.kind = CallerReport::Returned, .outcome = outcome});
  ::_exit(0);
}

// A process in between starts the calling process and exits, so that init collects it whenever it
// ends, and we never have to wait for it.
Status start_caller(const CallJob& job) {
  const pid_t between = ::_Fork();
  if (between < 0) return Error::sys(errno, "fork");
  if (between == 0) {
    const pid_t caller = ::_Fork();
    if (caller == 0) run_caller(job);
    if (caller < 0) send_report(job, {.kind = CallerReport::ForkFailed, .pid_or_errno = errno});
    ::_exit(0);
  }
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

Error stuck(std::string_view doing, std::chrono::milliseconds deadline, int pid) {
  Error error(Errc::Timeout,
              fmt::format("{} did not return within {} ms: it is stuck in the kernel", doing,
                          deadline.count()));
  if (pid <= 0) return error;
  return std::move(error).advise(
      fmt::format("see what it waits for with: sudo cat /proc/{}/stack", pid));
}

// The next report. Timeout at the deadline; Internal if the process ended without one.
Result<CallerReport> next_report(int pipe, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::clamp<long long>(left, 0, 1 << 30)));
    if (ready < 0 && errno != EINTR) return Error::sys(errno, "poll");
    if (ready == 0 && left <= 0) return Error(Errc::Timeout, "no answer in time");
    if (ready <= 0) continue;
    CallerReport report;
    const auto got = ::read(pipe, &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "read from the process that makes the call");
    if (got != sizeof report)
      return Error(Errc::Internal, "its process was killed before the call returned");
    return report;
  }
}

timeval to_timeval(std::chrono::milliseconds time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1000),
          .tv_usec = static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

}  // namespace

Result<CallOutcome> call_with_deadline(const std::function<CallOutcome(int file)>& call, int file,
                                       std::chrono::milliseconds deadline, std::string_view doing) {
  const auto until = Clock::now() + deadline;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  const UniqueFd mine(ends[0]);
  UniqueFd theirs(ends[1]);
  const CallJob job{
      .report = theirs.get(),
      .file = file,
      .last_descriptor = highest_descriptor(),
      .call = &call,
      .interrupt = {.it_interval = {}, .it_value = to_timeval(deadline + kInterruptAfter)}};
  GANTRY_CHECK(start_caller(job));
  theirs.reset();
  for (int caller = 0;;) {
    const auto report = next_report(mine.get(), until);
    if (!report.ok() && report.error().code() == Errc::Timeout)
      return stuck(doing, deadline, caller);
    if (!report.ok()) return Error(report.error()).in(doing);
    if (report->kind == CallerReport::ForkFailed) return Error::sys(report->pid_or_errno, "fork");
    if (report->kind == CallerReport::Returned) return report->outcome;
    caller = report->pid_or_errno;
  }
}

}  // namespace gantry::sys
