// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/start_detached.hpp"

#include "base/core/text.hpp"
#include "base/sys/unique_fd.hpp"
#include "sharing/daemon/log_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <fstream>

namespace gantry::daemon {
namespace {

// The daemon belongs to the machine, not to the program that happens to start it first: none of
// that program's limits, and not its cgroup. Only root may raise a hard limit.
void leave_callers_limits() {
  constexpr rlim_t kDescriptors = 1U << 20U;
  constexpr rlim_t kStack = 8U << 20U;
  constexpr std::array kUnlimited{RLIMIT_AS,         RLIMIT_CPU,   RLIMIT_DATA,
                                  RLIMIT_FSIZE,      RLIMIT_LOCKS, RLIMIT_NPROC,
                                  RLIMIT_SIGPENDING, RLIMIT_RSS,   RLIMIT_MEMLOCK};
  const auto raise = [](auto resource, rlim_t wanted) {
    rlimit limit{.rlim_cur = wanted, .rlim_max = wanted};
    if (::setrlimit(resource, &limit) == 0 || ::getrlimit(resource, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(resource, &limit);
  };
  for (const auto resource : kUnlimited) raise(resource, RLIM_INFINITY);
  raise(RLIMIT_NOFILE, kDescriptors);
  raise(RLIMIT_STACK, kStack);
  ::signal(SIGXFSZ, SIG_IGN);  // where the limit stays, a write fails instead
  ::umask(022);
  ::setpriority(PRIO_PROCESS, 0, 0);
}

// A container that shares the machine's pids, such as the agent's pod, has its own mounts. What it
// starts must end with it, so it stays in its cgroup.
bool is_in_own_container() {
  struct stat ours {};
  struct stat first {};
  return ::stat("/proc/self/ns/mnt", &ours) == 0 && ::stat("/proc/1/ns/mnt", &first) == 0 &&
         ours.st_ino != first.st_ino;
}

// cgroup.procs of the root of each hierarchy: one with cgroup v2, one for each controller with v1.
std::vector<std::string> cgroup_roots() {
  std::vector<std::string> roots;
  if (is_in_own_container()) return roots;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto type = line.find(" - cgroup");
    const auto words = split(line, ' ');
    if (type == std::string::npos || words.size() < 6 || words[3] != "/") continue;
    roots.push_back(fmt::format("{}/cgroup.procs", words[4]));
  }
  return roots;
}

// To the roots, if they may be written.
void leave_callers_cgroups(const std::vector<std::string>& roots) {
  for (const auto& root : roots) {
    const int file = ::open(root.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) continue;
    (void)!::write(file, "0\n", 2);  // this process
    ::close(file);
  }
}

// In the child: only system calls. If something fails, errno comes back through the pipe, which is
// closed when the program starts.
[[noreturn]] void become(char* const* argv, const std::vector<std::string>& cgroups, int null,
                         int log, int report) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  const pid_t second = ::fork();  // not a session leader, so it can never get a terminal
  if (second > 0) ::_exit(0);
  leave_callers_limits();
  leave_callers_cgroups(cgroups);
  if (second == 0 && ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(null, STDOUT_FILENO) >= 0 &&
      ::dup2(log, STDERR_FILENO) >= 0 && ::chdir("/") == 0)
    ::execvp(argv[0], argv);
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Result<std::uint64_t> start_detached(const std::vector<std::string>& argv, const std::string& log) {
  GANTRY_TRY(const auto words, open_log(log));
  struct stat before {};
  if (::fstat(words.get(), &before) != 0) return Error::sys(errno, "fstat").in(log);
  const sys::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return Error::sys(errno, "open").in("/dev/null");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe2");
  const sys::UniqueFd reading(ends[0]);
  sys::UniqueFd writing(ends[1]);
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const auto& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const auto cgroups = cgroup_roots();
  const pid_t first = ::fork();
  if (first < 0) return Error::sys(errno, "fork");
  if (first == 0) become(pointers.data(), cgroups, null.get(), words.get(), writing.get());
  writing.reset();
  ::waitpid(first, nullptr, 0);
  int error = 0;
  if (::read(reading.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error))
    return Error::sys(error, "exec").in(argv.front());
  return static_cast<std::uint64_t>(before.st_size);
}

}  // namespace gantry::daemon
