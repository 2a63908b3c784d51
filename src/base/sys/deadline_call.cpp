// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_call.hpp"

#include "base/core/clock.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/detached_process.hpp"
#include "base/sys/socket_wait.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::sys {
namespace {

constexpr std::chrono::milliseconds kInterruptAfter{1000};  // counted from the last moment

// All that the calling process needs, prepared before the fork.
struct CallJob {
  int answer;
  int file;                  // -1: none
  unsigned last_descriptor;  // where close_range is missing
  const std::function<CallOutcome(int)>* call;
  itimerval interrupt;
};

// A process that hangs must not keep a lock, a socket or the other end of a pipe.
void close_all_others(const CallJob& job) {
  const int file = job.file < 0 ? job.answer : job.file;
  const std::array kept{std::min(job.answer, file), std::max(job.answer, file)};
  close_all_but(kept, job.last_descriptor);
}

void run_caller(const CallJob& job) {
  ::setitimer(ITIMER_REAL, &job.interrupt, nullptr);
  close_all_others(job);
  const auto outcome = (*job.call)(job.file);
  if (::write(job.answer, &outcome, sizeof outcome) < 0) return;  // the waiting process gave up
}

// The outcome, with one write, which is atomic. Timeout if none came in time; Internal if the
// process ended without one.
Result<CallOutcome> await_outcome(int pipe, std::chrono::milliseconds time) {
  const auto waited = wait_for(pipe, POLLIN, {.deadline = Clock::now() + time});
  if (!waited.ok()) return waited.error();
  CallOutcome outcome;
  ssize_t got = -1;
  do {
    got = ::read(pipe, &outcome, sizeof outcome);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return Error::sys(errno, "read from the process that makes the call");
  if (got == sizeof outcome) return outcome;
  return Error(Errc::Internal, "its process was killed before the call returned");
}

timeval to_timeval(std::chrono::milliseconds time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1000),
          .tv_usec = static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

}  // namespace

Result<CallOutcome> call_with_deadline(const std::function<CallOutcome(int file)>& call, int file,
                                       std::chrono::milliseconds deadline, std::string_view doing) {
  AnswerDeadline answer_by(deadline);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  const UniqueFd mine(ends[0]);
  UniqueFd theirs(ends[1]);
  const CallJob job{
      .answer = theirs.get(),
      .file = file,
      .last_descriptor = highest_descriptor(),
      .call = &call,
      .interrupt = {.it_interval = {},
                    .it_value = to_timeval(AnswerDeadline::longest(deadline) + kInterruptAfter)}};
  GANTRY_TRY(const auto process, start_detached([&] { run_caller(job); }));
  theirs.reset();
  for (;;) {
    const auto outcome = await_outcome(mine.get(), answer_by.left());
    if (outcome.ok()) return outcome;
    if (outcome.error().code() != Errc::Timeout) return Error(outcome.error()).in(doing);
    if (!answer_by.extend(process)) return late(doing, deadline, process);
  }
}

}  // namespace gantry::sys
