// SPDX-License-Identifier: Apache-2.0
#include "base/sys/detached_process.hpp"

#include "base/core/clock.hpp"
#include "base/core/text.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::sys {
namespace {

constexpr std::size_t kStatLimit = 4096;

// Written by the process in between, which ends then. One write to a pipe is atomic.
struct StartReport {
  pid_t process = -1;
  int error = 0;
};

// Only SIGKILL and an alarm of its own end it: Ctrl-C in a terminal must not stop a call that the
// journal says is under way.
void leave_our_session() {
  ::setsid();
  if (::chdir("/") != 0) return;  // it only keeps a directory in use
  ::signal(SIGALRM, SIG_DFL);
  sigset_t blocked;
  ::sigfillset(&blocked);
  ::sigdelset(&blocked, SIGALRM);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

[[noreturn]] void start_and_report(const std::function<void()>& work, int pipe) {
  StartReport report{.process = ::_Fork()};
  if (report.process == 0) {
    leave_our_session();
    work();
    ::_exit(0);
  }
  if (report.process < 0) report.error = errno;
  const bool written = ::write(pipe, &report, sizeof report) == sizeof report;
  ::_exit(written ? 0 : 1);
}

}  // namespace

Result<pid_t> start_detached(const std::function<void()>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  const UniqueFd mine(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t between = ::_Fork();
  if (between < 0) return Error::sys(errno, "fork");
  if (between == 0) start_and_report(work, theirs.get());
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  StartReport report;
  // The process itself has the other end, too: what is in the pipe is there already.
  ::fcntl(mine.get(), F_SETFL, O_NONBLOCK);
  if (::read(mine.get(), &report, sizeof report) != sizeof report)
    return Error(Errc::Internal, "the process between was killed");
  if (report.error != 0) return Error::sys(report.error, "fork");
  return report.process;
}

LateReason late_reason(std::string_view stat, std::chrono::milliseconds deadline) {
  constexpr std::size_t kUserTime = 11;  // words after the state, see proc(5)
  const auto end = stat.rfind(") ");     // of the name, which may contain any character
  if (end == std::string_view::npos) return LateReason::InKernel;
  const auto words = split(stat.substr(end + 2), ' ');
  if (words.front() == "T" || words.front() == "t") return LateReason::NotRunning;
  if (words.front() != "R" || words.size() <= kUserTime + 1) return LateReason::InKernel;
  const auto ticks =
      parse_u64(words[kUserTime]).value_or(0) + parse_u64(words[kUserTime + 1]).value_or(0);
  const auto per_second = static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
  const auto used = std::chrono::milliseconds(ticks * 1000 / per_second);
  return used * 2 < deadline ? LateReason::NotRunning : LateReason::InKernel;
}

LateReason late_reason(pid_t process, std::chrono::milliseconds deadline) {
  const UniqueFd file(::open(fmt::format("/proc/{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC));
  const auto stat = file.valid() ? read_regular(file.get(), kStatLimit, "stat")
                                 : Result<std::string>(std::string());
  return late_reason(stat.ok() ? *stat : "", deadline);
}

Error late(std::string_view doing, std::chrono::milliseconds deadline, pid_t process) {
  if (late_reason(process, deadline) == LateReason::NotRunning) {
    return Error(Errc::Timeout,
                 fmt::format("{} did not return within {} ms: its process did not get to run, "
                             "because the machine is overloaded or was paused",
                             doing, AnswerDeadline::longest(deadline).count()))
        .advise(fmt::format("see its state with: cat /proc/{}/stat", process));
  }
  return Error(Errc::Timeout, fmt::format("{} did not return within {} ms: it is stuck in the "
                                          "kernel",
                                          doing, deadline.count()))
      .advise(fmt::format("see what it waits for with: sudo cat /proc/{}/stack", process));
}

AnswerDeadline::AnswerDeadline(std::chrono::milliseconds deadline)
    : deadline_(deadline), until_(Clock::now() + deadline) {}

std::chrono::milliseconds AnswerDeadline::left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now());
  return std::clamp(left, std::chrono::milliseconds(0), std::chrono::milliseconds(1 << 30));
}

bool AnswerDeadline::extend(pid_t process) {
  if (extended_ || late_reason(process, deadline_) != LateReason::NotRunning) return false;
  extended_ = true;
  until_ = Clock::now() + deadline_;
  return true;
}

std::chrono::milliseconds AnswerDeadline::longest(std::chrono::milliseconds deadline) {
  return deadline * 2;
}

}  // namespace gantry::sys
