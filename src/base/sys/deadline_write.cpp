// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_write.hpp"

#include "base/core/clock.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

namespace gantry::sys {
namespace {

constexpr std::chrono::milliseconds kInterruptAfter{1000};  // counted from the deadline

// What the processes tell us, each with one write to a pipe, which is atomic.
struct WriterReport {
  enum Kind : int { Started, ForkFailed, OpenFailed, WriteFailed, Short, Done };
  int kind = Done;
  int value = 0;  // the writer's pid, or an errno
};

// All that the writer needs. It is prepared before the fork: the writer may be forked from a
// process with threads, so it may make system calls only.
struct WriterJob {
  int report;
  int file;                   // O_PATH
  unsigned last_descriptor;   // where close_range is missing
  std::array<char, 32> name;  // /proc/self/fd/N of the file
  std::string_view text;
  itimerval interrupt;
};

void send_report(const WriterJob& job, WriterReport::Kind kind, int value) {
  const WriterReport report{.kind = kind, .value = value};
  if (::write(job.report, &report, sizeof report) < 0) return;  // the caller gave up
}

void close_between(const WriterJob& job, unsigned first, unsigned last) {
  if (first > last) return;
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, last, 0U) == 0) return;
#endif
  for (unsigned fd = first; fd <= std::min(last, job.last_descriptor); ++fd)
    ::close(static_cast<int>(fd));
}

// A writer that hangs must not keep a lock, a socket or the other end of a pipe.
void close_all_others(const WriterJob& job) {
  const auto low = static_cast<unsigned>(std::min(job.report, job.file));
  const auto high = static_cast<unsigned>(std::max(job.report, job.file));
  if (low > 0) close_between(job, 0, low - 1);
  close_between(job, low + 1, high - 1);
  close_between(job, high + 1, ~0U);
}

// Only SIGKILL and our own alarm end the writer: Ctrl-C in a terminal must not stop a write that
// the journal says is under way.
void leave_our_session(const WriterJob& job) {
  ::setsid();
  if (::chdir("/") != 0) return;  // it only keeps a directory in use
  ::signal(SIGALRM, SIG_DFL);
  sigset_t blocked;
  ::sigfillset(&blocked);
  ::sigdelset(&blocked, SIGALRM);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::setitimer(ITIMER_REAL, &job.interrupt, nullptr);
}

[[noreturn]] void run_writer(const WriterJob& job) {
  leave_our_session(job);
  close_all_others(job);
  send_report(job, WriterReport::Started, ::getpid());
  const int fd = ::open(job.name.data(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) {
    send_report(job, WriterReport::OpenFailed, errno);
    ::_exit(1);
  }
  // One write: sysfs takes each write as a value of its own.
  const auto wrote = ::write(fd, job.text.data(), job.text.size());
  if (wrote < 0) {
    send_report(job, WriterReport::WriteFailed, errno);
  } else if (static_cast<std::size_t>(wrote) != job.text.size()) {
    send_report(job, WriterReport::Short, static_cast<int>(wrote));
  } else {
    send_report(job, WriterReport::Done, 0);
  }
  ::_exit(0);
}

// A process in between starts the writer and exits, so that init collects the writer whenever it
// ends, and we never have to wait for it.
Status start_writer(const WriterJob& job) {
  const pid_t between = ::_Fork();
  if (between < 0) return Error::sys(errno, "fork");
  if (between == 0) {
    const pid_t writer = ::_Fork();
    if (writer == 0) run_writer(job);
    if (writer < 0) send_report(job, WriterReport::ForkFailed, errno);
    ::_exit(0);
  }
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

Error stuck(std::string_view shown, std::chrono::milliseconds deadline, int pid) {
  Error error(Errc::Timeout, fmt::format("the write to {} did not return within {} ms: it is stuck "
                                         "in the kernel",
                                         shown, deadline.count()));
  if (pid <= 0) return error;
  return std::move(error).advise(
      fmt::format("see what it waits for with: sudo cat /proc/{}/stack", pid));
}

// The next report. Timeout at the deadline; Internal if the writer ended without one.
Result<WriterReport> next_report(int pipe, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::clamp<long long>(left, 0, 1 << 30)));
    if (ready < 0 && errno != EINTR) return Error::sys(errno, "poll");
    if (ready == 0 && left <= 0) return Error(Errc::Timeout, "no answer in time");
    if (ready <= 0) continue;
    WriterReport report;
    const auto got = ::read(pipe, &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "read from the writing process");
    if (got != sizeof report)
      return Error(Errc::Internal, "the writing process was killed before the write returned");
    return report;
  }
}

Status outcome_of(const WriterReport& report, std::string_view shown) {
  switch (report.kind) {
    case WriterReport::Done: return {};
    case WriterReport::ForkFailed: return Error::sys(report.value, "fork");
    case WriterReport::OpenFailed: return Error::sys(report.value, fmt::format("open {}", shown));
    case WriterReport::WriteFailed: return Error::sys(report.value, fmt::format("write {}", shown));
    default:
      return Error(Errc::Internal,
                   fmt::format("write {}: the kernel took only {} bytes", shown, report.value));
  }
}

unsigned last_descriptor() {
  rlimit limit{};
  constexpr rlim_t kMaxDescriptors = 1U << 20;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxDescriptors;
  return static_cast<unsigned>(std::min(limit.rlim_cur, kMaxDescriptors));
}

timeval to_timeval(std::chrono::milliseconds time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1000),
          .tv_usec = static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

}  // namespace

Status write_with_deadline(const Host& host, std::string_view path, std::string_view text,
                           std::chrono::milliseconds deadline) {
  const auto shown = host.outside(path);
  if (text.size() > kMaxKernelWrite)
    return Error(Errc::Invalid,
                 fmt::format("write {}: more than {} bytes", shown, kMaxKernelWrite));
  const auto until = Clock::now() + deadline;
  GANTRY_TRY(const auto file, host.open(path, O_PATH));  // looks the file up, opens nothing
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  const UniqueFd mine(ends[0]);
  UniqueFd theirs(ends[1]);
  WriterJob job{
      .report = theirs.get(),
      .file = file.get(),
      .last_descriptor = last_descriptor(),
      .name = {},
      .text = text,
      .interrupt = {.it_interval = {}, .it_value = to_timeval(deadline + kInterruptAfter)}};
  fmt::format_to_n(job.name.data(), job.name.size() - 1, "/proc/self/fd/{}", file.get());
  GANTRY_CHECK(start_writer(job));
  theirs.reset();
  for (int writer = 0;;) {
    const auto report = next_report(mine.get(), until);
    if (!report.ok() && report.error().code() == Errc::Timeout)
      return stuck(shown, deadline, writer);
    if (!report.ok()) return Error(report.error()).in(fmt::format("write {}", shown));
    if (report->kind != WriterReport::Started) return outcome_of(*report, shown);
    writer = report->value;
  }
}

}  // namespace gantry::sys
