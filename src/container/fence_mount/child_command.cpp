// SPDX-License-Identifier: Apache-2.0
#include "container/fence_mount/child_command.hpp"

#include "base/core/text.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::fence_mount {
namespace {

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kNotPrepared = 125;
constexpr std::size_t kChildrenLimit = std::size_t{4} << 20;

// Signals that users and supervisors send. SIGTSTP and similar signals are not forwarded: the
// terminal stops both processes, and the shell continues both.
constexpr std::array kForwardedSignals = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
                                          SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

sigset_t waited_for() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kForwardedSignals) ::sigaddset(&set, signal);
  ::sigaddset(&set, SIGCHLD);
  return set;
}

// The terminal sends its signals to our whole process group, so the child already has them.
bool is_from_terminal(const siginfo_t& info) {
  return info.si_code == SI_KERNEL;
}

int status_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Kills all descendants: orphans of the command become our children, because we are their
// subreaper.
void end_orphans() {
  constexpr int kRounds = 10'000;  // each round kills one generation, or waits for one
  for (int i = 0; i < kRounds; ++i) {
    const auto path = fmt::format("/proc/self/task/{}/children", ::getpid());
    const sys::UniqueFd list(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto text = list.valid() ? sys::read_regular(list.get(), kChildrenLimit, path)
                                   : Result<std::string>(std::string());
    if (!text.ok()) return;
    for (const auto word : split(*text, ' ')) {
      if (const auto pid = parse_u64(trim(word)); pid && *pid > 1)
        ::kill(static_cast<pid_t>(*pid), SIGKILL);
    }
    if (::waitpid(-1, nullptr, text->empty() ? WNOHANG : 0) < 0 && errno == ECHILD) return;
    if (text->empty()) return;
  }
}

Result<int> wait_and_forward_signals(pid_t child, const sigset_t& signals) {
  for (;;) {
    int status = 0;
    const pid_t done = ::waitpid(-1, &status, WNOHANG);
    if (done == child) return status_of(status);
    if (done > 0) continue;  // an orphan of the command
    if (done < 0 && errno != EINTR) return Error::sys(errno, "wait for the command");
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal > 0 && signal != SIGCHLD && !is_from_terminal(info)) ::kill(child, signal);
  }
}

void say(int fd, const std::string& text) {
  (void)sys::write_all(fd, text, "pipe");
}

// A pipe with O_CLOEXEC.
struct Pipe {
  sys::UniqueFd out, in;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  return Pipe{sys::UniqueFd(ends[0]), sys::UniqueFd(ends[1])};
}

// Waits for the other side: true after one byte, false if it closed the pipe.
bool wait_for_go(int fd) {
  char go = 0;
  for (;;) {
    const auto got = ::read(fd, &go, 1);
    if (got >= 0 || errno != EINTR) return got == 1;
  }
}

[[noreturn]] void become(const ChildCommand& command, int go, int problem, const sigset_t& mask) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!wait_for_go(go)) ::_exit(kNotPrepared);  // the parent has ended
  if (command.before) {
    if (const auto ready = command.before(); !ready.ok()) {
      say(problem, ready.error().text());
      ::_exit(kNotPrepared);
    }
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> words;
  for (const auto& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int failed = errno;
  fmt::print(stderr, "gantry share run: {}: {}\n", command.words.front(), std::strerror(failed));
  ::_exit(failed == ENOENT ? kNotFound : kNotExecutable);
}

}  // namespace

Result<int> run(const ChildCommand& command) {
  GANTRY_TRY(auto problem, make_pipe());
  GANTRY_TRY(auto go, make_pipe());
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto signals = waited_for();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = ::fork();
  if (child < 0) {
    const int failed = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return Error::sys(failed, "fork");
  }
  if (child == 0) {
    go.in.reset();
    become(command, go.out.get(), problem.in.get(), before);
  }
  problem.in.reset();
  go.out.reset();
  auto ready = command.started ? command.started(child) : Status();
  if (ready.ok()) say(go.in.get(), "g");
  go.in.reset();
  auto status = wait_and_forward_signals(child, signals);
  end_orphans();
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (!ready.ok()) return std::move(ready).error();
  std::string why(4096, '\0');
  const auto got = ::read(problem.out.get(), why.data(), why.size());
  if (got > 0) return Error(Errc::Internal, why.substr(0, static_cast<std::size_t>(got)));
  return status;
}

}  // namespace gantry::fence_mount
