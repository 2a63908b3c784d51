// SPDX-License-Identifier: Apache-2.0
#include "base/sys/child.hpp"

#include "base/core/clock.hpp"
#include "base/sys/socket_wait.hpp"
#include "base/sys/spawn.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace gantry::sys {
namespace {

constexpr int kDeniedStatus = 113;  // the child could not change to the requested user
constexpr int kExecFailedStatus = 127;
constexpr char kEndMarker = '\n';  // ends every answer, so that a truncated one is noticed
constexpr std::size_t kOutputLimit = std::size_t{4} << 20;

void write_ignoring_errors(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return;  // the parent gave up; the error cannot be reported
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// The order matters: groups and gid while we still have the right, uid last. Changing all uids away
// from 0 clears the capabilities.
bool become(const ChildUser& user) {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(user.gid, user.gid, user.gid) == 0 &&
         ::setresuid(user.uid, user.uid, user.uid) == 0;
}

// Everything that the child wrote until it closed its end, or the reason why we stopped reading.
Result<std::string> collect(int fd, Clock::time_point until, std::size_t limit) {
  std::string bytes;
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return Error(Errc::Timeout, "no answer in time");
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return Error::sys(errno, "poll");
    if (ready <= 0) continue;
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "read from child");
    if (got == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(got) > limit) {
      return Error(Errc::Corrupt, fmt::format("answer larger than {} bytes", limit));
    }
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

// Reads what is in the pipe now; false if no process can write to it any more.
Result<bool> drain(int fd, LongOutput long_output, std::string& output) {
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0) return Error::sys(errno, "read its output");
    if (got == 0) return false;
    output.append(buffer.data(), static_cast<std::size_t>(got));
    if (output.size() > kOutputLimit && long_output == LongOutput::KeepsEnd) {
      output.erase(0, output.size() - kOutputLimit / 2);
    } else if (output.size() > kOutputLimit) {
      return Error(Errc::Corrupt, fmt::format("output larger than {} bytes", kOutputLimit));
    }
  }
}

// Waits for the exit of the process, not for the end of its output: a daemon that it started may
// keep the pipe open forever.
Result<CommandResult> wait_for_command(pid_t pid, int fd, const CommandOptions& options,
                                       Clock::time_point until) {
  CommandResult result;
  for (bool open = true;;) {
    int status = 0;
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done < 0 && errno != EINTR) return Error::sys(errno, "wait for its end");
    if (open) {
      GANTRY_TRY(open, drain(fd, options.long_output, result.output));
    }
    if (done == pid) {
      result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      return result;
    }
    if (is_readable(options.stop)) return Error(Errc::Timeout, "was stopped");
    if (Clock::now() >= until) return Error(Errc::Timeout, "did not exit in time");
    pollfd wait{.fd = open ? fd : -1, .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, 5);
  }
}

std::vector<char*> to_argv(const std::vector<std::string>& texts) {
  std::vector<char*> words;
  words.reserve(texts.size() + 1);
  for (const auto& text : texts) words.push_back(const_cast<char*>(text.c_str()));
  words.push_back(nullptr);
  return words;
}

// A pipe that already contains `text` and whose write end is closed.
Result<UniqueFd> readable(std::string_view text) {
  if (text.size() > PIPE_BUF) return Error(Errc::Invalid, "the command's input is too large");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  UniqueFd out(ends[0]);
  const UniqueFd in(ends[1]);
  if (::write(in.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Error::sys(errno, "write");
  return out;
}

struct Program {
  char* const* words;
  char* const* environment;  // nullptr: ours
  int input;
  int output;
  const std::function<bool()>* before;
};

// Runs in the child: creates a process group, which can be killed as a whole, and restores default
// signals.
[[noreturn]] void exec_program(const Program& program) {
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(program.input, STDIN_FILENO);
  ::dup2(program.output, STDOUT_FILENO);
  ::dup2(program.output, STDERR_FILENO);
  if (!*program.before || (*program.before)()) {
    if (program.environment != nullptr) {
      ::execvpe(program.words[0], program.words, program.environment);
    } else {
      ::execvp(program.words[0], program.words);
    }
  }
  write_ignoring_errors(program.output,
                        fmt::format("{}: {}\n", program.words[0], ::strerror(errno)));
  ::_exit(kExecFailedStatus);
}

// Sends SIGKILL and waits for the exit. A process that hangs in an ioctl of a driver does not die,
// so we stop waiting after a while.
int end(pid_t pid) {
  ::kill(pid, SIGKILL);
  int status = SIGKILL;
  for (int tries = 0; tries < 1000; ++tries) {
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done == pid || (done < 0 && errno != EINTR)) break;
    ::usleep(500);
  }
  return status;
}

// The pipe may close before the process exits, so the deadline also limits the wait for the exit.
// nullopt: it has exited, but its status is lost because SIGCHLD is ignored.
std::optional<int> wait_until(pid_t pid, Clock::time_point until) {
  for (;;) {
    int status = 0;
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done == pid) return status;
    if (done < 0 && errno == ECHILD) return std::nullopt;
    if (Clock::now() >= until) return end(pid);
    ::usleep(200);
  }
}

}  // namespace

void send_answer(int fd, std::string answer) {
  answer += kEndMarker;
  write_ignoring_errors(fd, answer);
}

Child::Child(pid_t pid, UniqueFd answer, const ChildOptions& options)
    : pid_(pid),
      answer_(std::move(answer)),
      until_(Clock::now() + options.deadline),
      limit_bytes_(options.limit_bytes),
      user_(options.user == nullptr ? ChildUser{} : *options.user) {}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      answer_(std::move(other.answer_)),
      until_(other.until_),
      limit_bytes_(other.limit_bytes_),
      user_(other.user_) {}

Child::~Child() {
  if (pid_ < 0) return;
  end(pid_);
}

Result<Child> Child::start(const std::function<std::string()>& work, const ChildOptions& options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  UniqueFd mine(ends[0]);
  const UniqueFd theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Error::sys(errno, "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_IGN);
    if (options.user != nullptr && !become(*options.user)) ::_exit(kDeniedStatus);
    send_answer(theirs.get(), work());
    ::_exit(0);  // no destructors, no atexit: the vendor's libraries have both, and they can hang
  }
  return Child(pid, std::move(mine), options);
}

Result<Child> Child::spawn(const std::vector<std::string>& argv, const ChildOptions& options) {
  GANTRY_ASSERT(options.user == nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  UniqueFd mine(ends[0]);
  const UniqueFd theirs(ends[1]);
  GANTRY_TRY(const pid_t pid, sys::spawn(argv, theirs.get(), options.program));
  return Child(pid, std::move(mine), options);
}

Result<std::string> Child::join() {
  auto answer = collect(answer_.get(), until_, limit_bytes_ + sizeof kEndMarker);
  const pid_t pid = std::exchange(pid_, -1);
  if (!answer.ok()) {
    end(pid);
    return answer;
  }
  const int status = wait_until(pid, until_).value_or(0);
  if (WIFSIGNALED(status)) {
    return Error(Errc::Internal, fmt::format("crashed: {}", ::strsignal(WTERMSIG(status))));
  }
  if (WEXITSTATUS(status) == kDeniedStatus) {
    return Error(Errc::Denied, fmt::format("cannot run as {}:{}", user_.uid, user_.gid));
  }
  if (WEXITSTATUS(status) != 0) {
    return Error(Errc::Internal, fmt::format("child ended with status {}", WEXITSTATUS(status)));
  }
  if (!answer->ends_with(kEndMarker))
    return Error(Errc::Internal, "exited before it sent its whole answer");
  answer->pop_back();
  return answer;
}

Result<std::string> run_in_child(const std::function<std::string()>& work,
                                 const ChildOptions& options) {
  GANTRY_TRY(Child child, Child::start(work, options));
  return child.join();
}

Result<CommandResult> run_command(const std::vector<std::string>& argv,
                                  const CommandOptions& options) {
  const auto words = to_argv(argv);
  const auto environment = to_argv(options.environment);
  GANTRY_TRY(const auto input, readable(options.input).in(argv[0]));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  const UniqueFd mine(ends[0]);
  UniqueFd theirs(ends[1]);
  ::fcntl(mine.get(), F_SETFL, O_NONBLOCK);
  const auto until = Clock::now() + options.deadline;
  const pid_t pid = ::fork();
  if (pid < 0) return Error::sys(errno, "fork");
  if (pid == 0)
    exec_program({.words = words.data(),
                  .environment = options.environment.empty() ? nullptr : environment.data(),
                  .input = input.get(),
                  .output = theirs.get(),
                  .before = &options.before});
  ::setpgid(pid, pid);  // parent and child both call it, because either may run first
  theirs.reset();
  auto result = wait_for_command(pid, mine.get(), options, until);
  if (result.ok()) return result;
  ::kill(-pid, SIGKILL);
  end(pid);
  return std::move(result).error().in(argv[0]);
}

Result<CommandResult> run_command(const std::vector<std::string>& argv,
                                  std::chrono::milliseconds deadline) {
  return run_command(argv, CommandOptions{.deadline = deadline});
}

}  // namespace gantry::sys
